# The Python package, and what goes there and comes back.

needs_python <- function() {
  if (!reticulate::py_module_available("calibrary.public")) {
    stop(
      "the Python package calibrary is not installed in ", reticulate::py_exe(),
      ": run reticulate::py_install(\"calibrary[fast,plots]\", pip = TRUE), or choose another Python with the ",
      "environment variable RETICULATE_PYTHON", call. = FALSE
    )
  }
  reticulate::import("calibrary", convert = FALSE)
}

# Call a Python function; its warnings become warnings of R.
call_python <- function(name, ...) {
  fun <- needs_python()[[name]]
  warnings <- reticulate::import("warnings", convert = FALSE)
  caught <- character()
  with(warnings$catch_warnings(record = TRUE) %as% recorded, {
    warnings$simplefilter("always")
    result <- fun(...)
    caught <- unique(vapply(
      reticulate::iterate(recorded), function(w) as.character(reticulate::py_str(w$message)), ""
    ))
  })
  for (sentence in caught) warning(sentence, call. = FALSE)
  result
}

# Python refuses 10.0 where it counts, so whole numbers become integers.
options_for <- function(...) {
  given <- list(...)
  if (length(given) > 0 && (is.null(names(given)) || any(names(given) == ""))) {
    stop("options must be named, such as n_bins = 10", call. = FALSE)
  }
  lapply(given, function(value) {
    whole <- is.double(value) && length(value) == 1 && is.finite(value) && value == round(value) && abs(value) < 2^31
    if (whole) as.integer(value) else value
  })
}

# The draws follow set.seed().
with_seed <- function(options) {
  if (is.null(options$rng)) options$rng <- sample.int(.Machine$integer.max, 1L)
  options
}

# Arrays go as lists of columns and come back as lists, because reticulate before 1.36 cannot read arrays of numpy 2.
to_array <- function(p) {
  numpy <- reticulate::import("numpy", convert = FALSE)
  if (!is.matrix(p)) return(numpy$array(as.list(p)))
  numpy$array(lapply(seq_len(ncol(p)), function(i) as.list(p[, i])))$T
}

from_array <- function(value) {
  if (reticulate::py_has_attr(value, "tolist")) value <- value$tolist()
  reticulate::py_to_r(value)
}

number <- function(value) {
  value <- unlist(from_array(value))
  if (is.null(value)) NA_real_ else as.double(value)
}

text <- function(value) {
  value <- reticulate::py_to_r(value)
  if (is.null(value)) NA_character_ else as.character(value)
}

none_is_na <- function(objects, name, as = number) {
  vapply(objects, function(object) as(object[[name]]), as(reticulate::r_to_py(NULL)))
}
