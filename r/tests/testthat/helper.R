skip_without_python <- function() {
  found <- reticulate::py_module_available("calibrary.public")
  if (!found && Sys.getenv("CALIBRARY_MUST_RUN") != "") stop("the Python package calibrary is not installed")
  skip_if_not(found, "the Python package calibrary is not installed")
}

example_rows <- function(n = 300) {
  set.seed(1)
  p <- runif(n)
  event <- rbinom(n, 1, p^2)
  tibble::tibble(y = event, p = p, q = p^2, w = sample(1:3, n, TRUE))
}

# As parsnip's augment() and tune's collect_predictions() write them; the event is the first level.
example_predictions <- function(n = 300) {
  rows <- example_rows(n)
  tibble::tibble(
    .row = seq_len(n), outcome = factor(ifelse(rows$y == 1, "ill", "well"), c("ill", "well")),
    .pred_ill = rows$p, .pred_well = 1 - rows$p,
    .pred_class = factor(ifelse(rows$p > 0.5, "ill", "well"), c("ill", "well"))
  )
}

example_classes <- function(n = 300) {
  set.seed(2)
  odds <- matrix(rexp(3 * n), n)
  p <- odds / rowSums(odds)
  colnames(p) <- paste0(".pred_", c("a", "b", "c"))
  drawn <- apply(p^2, 1, function(row) sample(c("a", "b", "c"), 1, prob = row))
  tibble::tibble(truth = factor(drawn), tibble::as_tibble(p))
}
