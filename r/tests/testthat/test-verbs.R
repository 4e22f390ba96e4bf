ece_of <- function(y, p, bins = 15) {
  bin <- pmin(floor(p * bins), bins - 1)
  sum(abs(tapply(y - p, bin, sum))) / length(y)
}

test_that("a metric is that of its definition, in base R", {
  skip_without_python()
  rows <- example_rows()
  found <- metric(rows, y, c("ece", "bs"), prob = p)
  expect_s3_class(found, "tbl_df")
  expect_equal(found$.metric, c("ece", "bs"))
  expect_equal(found$.estimate[1], ece_of(rows$y, rows$p))
  expect_equal(metric(rows, y, "ece", prob = p, n_bins = 10)$.estimate, ece_of(rows$y, rows$p, 10))
  expect_equal(metric(rows, "y", "bs", prob = "p")$.estimate, mean((rows$y - rows$p)^2))
  fit <- glm(y ~ qlogis(p), binomial, rows)
  cox <- metric(rows, y, "cis", prob = p)
  expect_equal(cox$.part, c("intercept", "slope"))
  expect_equal(cox$.estimate, unname(coef(fit)), tolerance = 1e-6)
  expect_equal(metric(rows, y, "cis.slope", prob = p)$.estimate, cox$.estimate[2])
})

test_that("weights count rows", {
  skip_without_python()
  rows <- example_rows()
  again <- rows[rep(seq_len(nrow(rows)), rows$w), ]
  expect_equal(metric(rows, y, "ece", prob = p, case_weights = w), metric(again, y, "ece", prob = p))
})

test_that("the event of a prediction tibble is the first level, as in yardstick", {
  skip_without_python()
  rows <- example_rows()
  tidy <- example_predictions()
  expect_equal(metric(tidy, outcome, "cis")$.estimate, metric(rows, y, "cis", prob = p)$.estimate)
  second <- metric(tidy, outcome, "cis", event_level = "second")
  expect_equal(second$.estimate, metric(transform(rows, y = 1 - y, p = 1 - p), y, "cis", prob = p)$.estimate)
  named <- metric(tidy, outcome, "cis", prob = .pred_well)
  expect_equal(named, second)
  tidy$risk <- tidy$.pred_ill
  expect_message(metric(tidy, outcome, "bs", prob = risk), "read as the probability of ill")
})

test_that("several classes have a column each, in the order of the levels", {
  skip_without_python()
  rows <- example_classes()
  p <- as.matrix(rows[c(".pred_a", ".pred_b", ".pred_c")])
  hit <- as.integer(rows$truth) == max.col(p)
  found <- metric(rows, truth, "ece")
  expect_equal(found$.estimator, "multiclass")
  expect_equal(found$.estimate, ece_of(hit, apply(p, 1, max)))
  shuffled <- rows[c(4, 2, 3, 1)]
  expect_equal(metric(shuffled, truth, "ece"), found)
  expect_equal(metric(rows, truth, "ece", prob = c(.pred_a, .pred_b, .pred_c)), found)
})

test_that("intervals and tests follow set.seed()", {
  skip_without_python()
  rows <- example_rows()
  set.seed(3)
  first <- interval(rows, y, c("ece", "cis"), prob = p, n_resamples = 99)
  set.seed(3)
  expect_equal(interval(rows, y, c("ece", "cis"), prob = p, n_resamples = 99), first)
  expect_equal(nrow(first), 3)
  expect_true(all(first$.lower < first$.estimate & first$.estimate < first$.upper))
  profile <- suppressMessages(confint(glm(y ~ qlogis(p), binomial, rows)))
  expect_equal(unname(as.matrix(first[2:3, c(".lower", ".upper")])), unname(profile), tolerance = 1e-3)
  tested <- test(rows, y, "ece", prob = p, n_resamples = 99, rng = 1)
  expect_equal(tested$p.value, 0.01)
  expect_lt(tested$if_calibrated, tested$.estimate)
  expect_gt(test(rows, y, "ece", prob = q, n_resamples = 99, rng = 1)$p.value, 0.05)
})

test_that("the report answers in words and writes its page", {
  skip_without_python()
  rows <- example_rows()
  page <- tempfile(fileext = ".html")
  expect_message(found <- report(rows, y, prob = p, file = page, n_resamples = 49), "Not calibrated")
  expect_match(attr(found, "headline"), "Not calibrated")
  expect_true(any(grepl("Not calibrated", readLines(page, warn = FALSE))))
  expect_equal(found$.estimate[found$.metric == "ece"], metric(rows, y, "ece", prob = p)$.estimate)
  expect_setequal(names(found), c(
    ".metric", ".part", ".estimator", ".estimate", ".lower", ".upper", "if_calibrated", "status"
  ))
})

test_that("two models are compared on the same rows", {
  skip_without_python()
  rows <- example_rows()
  found <- compare(rows, y, c("bs", "ece"), prob_a = p, prob_b = q, n_resamples = 499, rng = 1)
  expect_equal(found$.estimate[1], mean((rows$y - rows$p)^2) - mean((rows$y - rows$q)^2))
  paired <- t.test((rows$y - rows$p)^2 - (rows$y - rows$q)^2)
  expect_equal(found$p.value[1], paired$p.value, tolerance = 0.2)
  expect_equal(found$value_a - found$value_b, found$.estimate)
  a <- example_predictions()
  b <- transform(a, .pred_ill = .pred_ill^2, .pred_well = 1 - .pred_ill^2)
  direct <- compare(a, outcome, "bs", other = b, rng = 1)
  expect_equal(compare(a, outcome, "bs", other = b[sample(nrow(b)), ], rng = 1), direct)
  expect_equal(direct$.estimate, found$.estimate[1])
  expect_error(compare(a, outcome, other = b[-1, ]), "1 rows of data are not in other")
  expect_error(compare(a, outcome, other = b[names(b) != ".row"]), "column .row")
  expect_error(compare(a, outcome, other = transform(b, outcome = rev(outcome))), "outcome differs")
  expect_error(compare(rbind(a, a), outcome, other = rbind(b, b)), "more than once")
  expect_error(compare(rows, y, prob_a = p), "prob_a = and prob_b =")
})

test_that("a map is fitted to some rows and applied to others", {
  skip_without_python()
  rows <- example_rows()
  found <- recalibrate(rows[1:150, ], y, rows[151:300, ], prob = p, map = "platt")
  expect_equal(attr(found, "map"), "platt")
  expect_equal(found$q, rows$q[151:300])
  fit <- glm(y ~ qlogis(p), binomial, rows[1:150, ])
  expect_equal(found$p, unname(predict(fit, rows[151:300, ], type = "response")), tolerance = 1e-4)
  tidy <- recalibrate(example_predictions()[1:150, ], outcome, example_predictions()[151:300, ], map = "platt")
  expect_equal(tidy$.pred_ill, found$p)
  expect_equal(tidy$.pred_ill + tidy$.pred_well, rep(1, 150))
  expect_equal(tidy$.pred_class == "ill", tidy$.pred_ill >= 0.5)
  classes <- example_classes()
  new <- recalibrate(classes, truth, classes[1:9, ], map = "temperature")
  expect_equal(rowSums(new[c(".pred_a", ".pred_b", ".pred_c")]), rep(1, 9))
  expect_false(isTRUE(all.equal(new$.pred_a, classes$.pred_a[1:9])))
})

test_that("warnings of Python are warnings of R", {
  skip_without_python()
  rows <- example_rows()
  rows$p[1] <- 1
  expect_warning(metric(rows, y, "cis", prob = p), "confidence of exactly 0 or 1")
})

test_that("what could be read in two ways is refused", {
  skip_without_python()
  rows <- example_rows()
  holes <- rows
  holes$p[c(1, 5)] <- NA
  holes$y[7] <- NA
  expect_error(metric(holes, y, prob = p), "3 of 300 rows have missing values in y, p")
  expect_message(found <- metric(holes, y, prob = p, na_rm = TRUE), "3 of 300 rows")
  expect_equal(found, metric(rows[-c(1, 5, 7), ], y, prob = p))
  expect_error(metric(rows, nothing, prob = p), "nothing")
  expect_error(metric(rows, y), "no columns .pred_0, .pred_1")
  expect_error(metric(rows, y, prob = c(p, q)), "one column of probabilities")
  expect_error(metric(rows, y, "ece", p, 10), "must be named")
  expect_error(metric(transform(rows, y = y + 1), y, prob = p), "a factor is needed")
  expect_error(metric(structure(rows, class = c("grouped_df", class(rows))), y, prob = p), "group_modify")
  tidy <- example_predictions()
  tidy$.pred_well[1] <- 0.9
  tidy$.pred_ill[1] <- 0.9
  expect_error(metric(tidy, outcome), "1 of 300 rows do not have a sum of 1")
  expect_error(metric(rows, y, "no such metric", prob = p), "no such metric")
})
