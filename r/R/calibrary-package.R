#' @keywords internal
#' @importFrom reticulate %as%
"_PACKAGE"
