# Which columns hold the truth and the probabilities.

# The name of a column that was written as a name or as a string.
column_name <- function(expression, data, envir, what) {
  name <- if (is.name(expression) && as.character(expression) %in% names(data)) {
    as.character(expression)
  } else {
    eval(expression, envir)
  }
  if (!is.character(name) || !all(name %in% names(data))) {
    missing <- if (is.character(name)) setdiff(name, names(data)) else deparse(expression)
    stop(what, ": the data has no column ", paste(missing, collapse = ", "), call. = FALSE)
  }
  name
}

column_names <- function(expression, data, envir, what) {
  if (is.null(expression)) return(NULL)
  if (is.call(expression) && identical(expression[[1]], as.name("c"))) {
    return(unlist(lapply(as.list(expression)[-1], column_name, data, envir, what)))
  }
  column_name(expression, data, envir, what)
}

# Labels, probabilities and weights, ready for Python.
#
# Two classes: labels 0 and 1 and the probability of class 1, which is the event. Several: positions, and one column each.
read_columns <- function(data, truth, prob, weights, event_level, na_rm) {
  if (!is.data.frame(data)) stop("data: pass a data frame", call. = FALSE)
  if (inherits(data, "grouped_df")) {
    stop("data is grouped: use dplyr::ungroup(), or call this for each group with dplyr::group_modify()", call. = FALSE)
  }
  event_level <- match.arg(event_level, c("first", "second"))
  y <- data[[truth]]
  levels <- class_levels(y, truth)
  prob <- if (is.null(prob)) prediction_columns(data, truth, levels) else prob
  given <- data[c(truth, prob, weights)]
  complete <- stats::complete.cases(given)
  if (!all(complete)) {
    if (!na_rm) {
      stop(sum(!complete), " of ", nrow(data), " rows have missing values in ", paste(names(given), collapse = ", "),
        ": pass na_rm = TRUE to leave them out", call. = FALSE)
    }
    message(sum(!complete), " of ", nrow(data), " rows with missing values are left out")
  }
  for (name in c(prob, weights)) {
    if (!is.numeric(data[[name]])) stop(name, ": a column of numbers is needed", call. = FALSE)
  }
  found <- list(truth = truth, prob = prob, levels = levels, rows = which(complete))
  if (!is.null(weights)) found$weights <- as.double(data[[weights]])[complete]
  if (length(levels) == 2L) {
    event <- event_of(y, levels, prob, event_level)
    found$event <- event
    column <- if (length(prob) == 2L) paste0(".pred_", event) else prob
    found$column <- column
    found$y <- as.integer(as.character(y) == event)[complete]
    found$p <- as.double(data[[column]])[complete]
    if (length(prob) == 2L) refuse_other_sums(found$p + as.double(data[[setdiff(prob, column)]])[complete], prob)
  } else {
    if (length(prob) != length(levels)) {
      stop(truth, " has ", length(levels), " classes, but there are ", length(prob), " columns of probabilities",
        call. = FALSE)
    }
    found$y <- match(as.character(y), levels)[complete] - 1L
    found$p <- unname(as.matrix(as.data.frame(lapply(data[prob], as.double))))[complete, , drop = FALSE]
  }
  found$estimator <- if (length(levels) == 2L) "binary" else "multiclass"
  found
}

class_levels <- function(y, truth) {
  if (is.factor(y)) return(levels(y))
  if (is.logical(y)) return(c("FALSE", "TRUE"))
  if (is.numeric(y) && all(y %in% c(0, 1, NA))) return(c("0", "1"))
  stop(truth, ": a factor is needed, or 0 and 1, or TRUE and FALSE", call. = FALSE)
}

# The columns that tidymodels writes: .pred_ and the name of the class.
prediction_columns <- function(data, truth, levels) {
  columns <- paste0(".pred_", levels)
  if (!all(columns %in% names(data))) {
    stop("the data has no columns ", paste(setdiff(columns, names(data)), collapse = ", "),
      " (one for each class of ", truth, "): pass prob =", call. = FALSE)
  }
  columns
}

# The class that a single probability belongs to: its name says it, or event_level, or the class is 1.
event_of <- function(y, levels, prob, event_level) {
  if (length(prob) > 2L || (length(prob) == 2L && !setequal(prob, paste0(".pred_", levels)))) {
    stop("two classes: pass one column of probabilities, or the columns ",
      paste0(".pred_", levels, collapse = " and "), call. = FALSE)
  }
  if (!is.factor(y)) return(levels[2])
  named <- levels[paste0(".pred_", levels) %in% prob]
  if (length(named) == 1L) return(named)
  event <- if (event_level == "first") levels[1] else levels[2]
  if (length(named) == 0L) {
    message("the column ", prob, " is read as the probability of ", event, " (event_level = \"", event_level, "\")")
  }
  event
}

refuse_other_sums <- function(sums, prob) {
  off <- sum(abs(sums - 1) > 1e-6)
  if (off > 0) {
    stop(off, " of ", length(sums), " rows do not have a sum of 1 over ", paste(prob, collapse = " and "), call. = FALSE)
  }
}

predictions_of <- function(found) {
  do.call(call_python, c(list("predictions", to_array(found$y), to_array(found$p)), weights_of(found)))
}

weights_of <- function(found) if (is.null(found$weights)) list() else list(sample_weight = to_array(found$weights))
