#' Measure and test calibration
#'
#' @description
#' `metric()` gives values, `interval()` also confidence intervals, and `test()` the p-value of the hypothesis that the
#' predictions are calibrated. The computations are those of the Python package calibrary.
#'
#' @param data A data frame, or the tibble of predictions of tidymodels. Not grouped.
#' @param truth The column of the true class: a factor, or 0 and 1, or `TRUE` and `FALSE`. A name or a string.
#' @param name Names of metrics: any names of the catalogue of calibrary, such as `"ece"`, `"bs"` or `"cis"`.
#' @param prob The column of the probability, or one column for each class in the order of the levels. By default the
#'   columns `.pred_CLASS` of tidymodels.
#' @param ... Options of the metric, the interval or the test, such as `n_bins = 10`, `n_resamples = 199` or `rng = 1`.
#'   Without `rng` the draws follow [set.seed()].
#' @param case_weights A column of weights; a row of weight 2 counts as two rows.
#' @param event_level Which level of a factor with two levels the probability belongs to, `"first"` as in yardstick, or
#'   `"second"`. It is not used for a column `.pred_CLASS`, whose name says it, nor for 0 and 1, where 1 is the event.
#' @param na_rm Leave out rows with missing values. By default they are refused.
#'
#' @returns A tibble with one row for each number. `.metric`, `.part` (of metrics with several numbers), `.estimator` and
#'   `.estimate`; of `interval()` also `.lower` and `.upper`; of `test()` the column `p.value`, and `if_calibrated`, the
#'   mean of the metric for a calibrated model.
#' @examplesIf reticulate::py_module_available("calibrary.public")
#' set.seed(1)
#' p <- runif(500)
#' data <- data.frame(y = rbinom(500, 1, p^2), p = p)
#' metric(data, y, c("ece", "bs"), prob = p)
#' interval(data, y, "ece", prob = p, n_resamples = 199)
#' test(data, y, "ece", prob = p, n_resamples = 199)
#' @export
metric <- function(data, truth, name = "ece", prob = NULL, ..., case_weights = NULL, event_level = "first",
                   na_rm = FALSE) {
  found <- read_here()
  given <- predictions_of(found)
  rows <- lapply(name, function(one) {
    value <- do.call(call_python, c(list("compute", one, given), options_for(...)))
    parts <- if (grepl(".", one, fixed = TRUE)) NULL else parts_of(one)
    values <- if (is.null(parts)) number(value) else vapply(parts, function(part) number(value[[part]]), 0)
    numbers_of(one, parts, found, .estimate = unname(values))
  })
  do.call(rbind, rows)
}

#' @rdname metric
#' @export
interval <- function(data, truth, name = "ece", prob = NULL, ..., case_weights = NULL, event_level = "first",
                     na_rm = FALSE) {
  found <- read_here()
  given <- predictions_of(found)
  options <- with_seed(options_for(...))
  rows <- lapply(name, function(one) {
    value <- do.call(call_python, c(list("interval", one, given), options))
    numbers_of(
      one, unlist(reticulate::py_to_r(value$parts)), found,
      .estimate = number(value$estimate), .lower = number(value$low), .upper = number(value$high),
      conf_level = number(value$confidence_level), method = text(value$method)
    )
  })
  do.call(rbind, rows)
}

#' @rdname metric
#' @export
test <- function(data, truth, name = "ece", prob = NULL, ..., case_weights = NULL, event_level = "first",
                 na_rm = FALSE) {
  found <- read_here()
  given <- predictions_of(found)
  options <- with_seed(options_for(...))
  rows <- lapply(name, function(one) {
    value <- do.call(call_python, c(list("test", one, given), options))
    values <- number(value$statistic)
    numbers_of(
      one, if (length(values) > 1L) parts_of(one), found,
      .estimate = values, if_calibrated = number(value$null_mean), p.value = number(value$pvalue)
    )
  })
  do.call(rbind, rows)
}

#' The report of calibration
#'
#' @description
#' `report()` answers in one sentence whether the predictions are calibrated, gives the numbers that matter, and writes
#' the page.
#'
#' @inheritParams metric
#' @param file Files to write: `"report.html"`, and others with the endings `.json`, `.csv`, `.md` or `.pdf`.
#' @param by A column of groups that are evaluated separately.
#' @param ... Settings of the report of Python: `primary = "smece"`, `n_resamples = 199`, `tolerance = 0.02`, ...
#'
#' @returns A tibble with the key numbers: `.metric`, `.part`, `.estimator`, `.estimate`, `.lower`, `.upper`,
#'   `if_calibrated` (what a calibrated model would show) and `status`. The attribute `headline` is the answer in words,
#'   which is also shown as a message.
#' @examplesIf reticulate::py_module_available("calibrary.public")
#' set.seed(1)
#' p <- runif(500)
#' data <- data.frame(y = rbinom(500, 1, p^2), p = p)
#' report(data, y, prob = p, n_resamples = 49)
#' @export
report <- function(data, truth, prob = NULL, file = NULL, ..., by = NULL, case_weights = NULL, event_level = "first",
                   na_rm = FALSE) {
  found <- read_here()
  settings <- options_for(...)
  groups <- column_names(substitute(by), data, parent.frame(), "by")
  if (!is.null(groups)) settings$by <- as.character(data[[groups]])[found$rows]
  page <- do.call(call_python, c(list("report", predictions_of(found)), settings))
  if (!is.null(file)) do.call(page$save, unname(as.list(path.expand(file))))
  rows <- reticulate::iterate(page$short_list)
  numbers <- tibble::tibble(
    .metric = none_is_na(rows, "id", text), .part = none_is_na(rows, "part", text), .estimator = found$estimator,
    .estimate = none_is_na(rows, "value"), .lower = none_is_na(rows, "low"), .upper = none_is_na(rows, "high"),
    if_calibrated = none_is_na(rows, "calibrated"), status = none_is_na(rows, "status", text)
  )
  attr(numbers, "headline") <- text(page$headline)
  message(attr(numbers, "headline"))
  numbers
}

#' Compare two models on the same rows
#'
#' @inheritParams metric
#' @param prob_a,prob_b The column of the probability of each model, or a column for each class. By default the columns
#'   `.pred_CLASS`, of `data` for model a and of `other` for model b.
#' @param other The predictions of model b if they are in another table of tidymodels. Its rows are matched by the
#'   column `.row` (and by `id`, the resample, if both tables have it), and must be the same rows with the same truth.
#' @param ... Options of the comparison, such as `n_resamples = 199` or `rng = 1`.
#'
#' @returns A tibble with one row for each metric: `.estimate` is the value of a less the value of b, with `.lower`,
#'   `.upper`, `p.value`, `value_a` and `value_b`.
#' @examplesIf reticulate::py_module_available("calibrary.public")
#' set.seed(1)
#' p <- runif(500)
#' data <- data.frame(y = rbinom(500, 1, p), good = p, bad = p^2)
#' compare(data, y, "bs", prob_a = good, prob_b = bad)
#' @export
compare <- function(data, truth, name = "bs", prob_a = NULL, prob_b = NULL, ..., other = NULL, case_weights = NULL,
                    event_level = "first", na_rm = FALSE) {
  here <- parent.frame()
  truth <- column_name(substitute(truth), data, here, "truth")
  weights <- column_names(substitute(case_weights), data, here, "case_weights")
  second <- if (is.null(other)) data else same_rows(data, other, truth)
  prob_a <- column_names(substitute(prob_a), data, here, "prob_a")
  prob_b <- column_names(substitute(prob_b), second, here, "prob_b")
  if (is.null(other) && (is.null(prob_a) || is.null(prob_b))) {
    stop("pass prob_a = and prob_b =, the columns of two models, or other =, the table of the second", call. = FALSE)
  }
  a <- read_columns(data, truth, prob_a, weights, event_level, na_rm)
  b <- read_columns(second, truth, prob_b, if (is.null(other)) weights, event_level, na_rm)
  if (!identical(a$event, b$event)) {
    stop("the probabilities of a are those of ", a$event, ", the ones of b those of ", b$event, call. = FALSE)
  }
  if (!identical(a$rows, b$rows)) stop("the two models have missing values in different rows", call. = FALSE)
  options <- with_seed(options_for(...))
  rows <- lapply(name, function(one) {
    value <- do.call(call_python, c(list("compare", one, to_array(a$y), to_array(a$p), to_array(b$p)), weights_of(a), options))
    numbers_of(
      one, NULL, a, .estimate = number(value$difference), .lower = number(value$low), .upper = number(value$high),
      p.value = number(value$pvalue), value_a = number(value$value_a), value_b = number(value$value_b)
    )
  })
  do.call(rbind, rows)
}

#' Recalibrate predictions
#'
#' @description
#' Fit a map from stated to better probabilities on `data`, and apply it to `new_data`. Fit it on rows on which the model
#' was not trained, and judge the result on further rows.
#'
#' @inheritParams metric
#' @param new_data The predictions to change; they need no truth.
#' @param map `"auto"`, which chooses by cross-fitting the simplest map that is about the best, or none; or the name of a
#'   map such as `"platt"`, `"temperature"`, `"isotonic"` or `"beta"`.
#'
#' @returns `new_data` as a tibble, with new probabilities in the same columns and, if there is a column `.pred_class`,
#'   the most probable class there. The attribute `map` is the name of the map.
#' @examplesIf reticulate::py_module_available("calibrary.public")
#' set.seed(1)
#' p <- runif(600)
#' data <- data.frame(y = rbinom(600, 1, p^2), p = p)
#' recalibrate(data[1:300, ], y, data[301:600, ], prob = p, map = "platt")
#' @export
recalibrate <- function(data, truth, new_data, prob = NULL, map = "auto", ..., case_weights = NULL,
                        event_level = "first", na_rm = FALSE) {
  found <- read_here()
  if (!is.data.frame(new_data) || !all(found$prob %in% names(new_data))) {
    stop("new_data: pass a data frame with ", paste(found$prob, collapse = ", "), call. = FALSE)
  }
  columns <- if (is.null(found$column)) found$prob else found$column
  if (anyNA(new_data[columns])) stop("new_data has missing probabilities", call. = FALSE)
  maker <- do.call(call_python, c(list("Recalibrator", map), options_for(...)))
  p <- unname(as.matrix(as.data.frame(lapply(new_data[columns], as.double))))
  if (length(columns) == 1L) p <- as.vector(p)
  fitted <- do.call(maker$fit, c(list(to_array(found$p), to_array(found$y)), weights_of(found)))
  changed <- from_array(fitted$transform(to_array(p)))
  new_data <- tibble::as_tibble(new_data)
  if (length(columns) == 1L) {
    new_data[[columns]] <- as.double(changed)
    for (rest in setdiff(found$prob, columns)) new_data[[rest]] <- 1 - new_data[[columns]]
  } else {
    changed <- do.call(rbind, lapply(changed, as.double))
    for (i in seq_along(columns)) new_data[[columns[i]]] <- changed[, i]
  }
  if (".pred_class" %in% names(new_data) && length(found$prob) == length(found$levels)) {
    best <- max.col(as.matrix(new_data[found$prob]), ties.method = "first")
    new_data$.pred_class <- factor(found$levels[best], found$levels)
  }
  attr(new_data, "map") <- text(fitted$map_)
  new_data
}

# The columns that the caller named.
read_here <- function() {
  verb <- sys.function(-1)
  call <- match.call(verb, sys.call(-1), expand.dots = FALSE)
  inside <- parent.frame()
  outside <- parent.frame(2)
  data <- inside$data
  truth <- column_name(call$truth, data, outside, "truth")
  read_columns(
    data, truth, column_names(call$prob, data, outside, "prob"),
    column_names(call$case_weights, data, outside, "case_weights"), inside$event_level, inside$na_rm
  )
}

# The parts of a metric with several numbers; NULL if it has one.
parts_of <- function(name) {
  fields <- reticulate::py_to_r(reticulate::py_get_item(needs_python()$catalogue, name)$fields)
  unlist(lapply(fields, `[[`, 1L))
}

numbers_of <- function(name, parts, found, ...) {
  tibble::tibble(
    .metric = name, .part = if (is.null(parts)) "" else parts, .estimator = found$estimator, ...
  )
}

# The rows of `other` in the order of `data`.
same_rows <- function(data, other, truth) {
  keys <- intersect(c(".row", "id", "id2"), intersect(names(data), names(other)))
  if (!".row" %in% keys) {
    stop("the rows of two tables are matched by the column .row, which tidymodels writes, and both must have it",
      call. = FALSE)
  }
  first <- do.call(paste, c(unname(as.list(data[keys])), sep = "\r"))
  second <- do.call(paste, c(unname(as.list(other[keys])), sep = "\r"))
  if (anyDuplicated(first) || anyDuplicated(second)) {
    stop("rows occur more than once by ", paste(keys, collapse = ", "), ": keep one .config of each", call. = FALSE)
  }
  if (!setequal(first, second)) {
    stop(length(setdiff(first, second)), " rows of data are not in other, and ", length(setdiff(second, first)),
      " the other way round", call. = FALSE)
  }
  other <- other[match(first, second), ]
  if (!truth %in% names(other) || !identical(as.character(data[[truth]]), as.character(other[[truth]]))) {
    stop("the column ", truth, " differs between the two tables", call. = FALSE)
  }
  other
}
