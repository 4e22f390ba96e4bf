library(testthat)
library(calibrary)

test_check("calibrary")
