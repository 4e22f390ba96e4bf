{{ config(materialized='table') }}
-- made by make_models.py: rows, ECE, Brier score, O/E and bias of each segment
WITH cal_sums AS (
  SELECT day, site, cell AS cal_cell, CAST(y AS DOUBLE) AS cal_y, SUM(CAST(n AS DOUBLE)) AS cal_n, (SUM(CAST(s AS DOUBLE)) + 16384e0 * SUM(CAST(s_high AS DOUBLE))) / SUM(CAST(n AS DOUBLE)) AS cal_position
  FROM read_parquet('{{ var("store") }}/states/*/*.parquet', hive_partitioning = true) WHERE cell IS NOT NULL GROUP BY day, site, cell, y
),
cal_sides AS (
  SELECT day, site, cal_cell, cal_y, cal_n, cal_position, CASE WHEN cal_cell > 30000 THEN 1 ELSE 0 END AS cal_right, CASE WHEN cal_cell > 30000 THEN 60000 - cal_cell ELSE cal_cell END AS cal_left
  FROM cal_sums
),
cal_levels AS (
  SELECT day, site, cal_cell, cal_y, cal_n, cal_right, CASE WHEN cal_left >= 28800 THEN 1200e0 WHEN cal_left >= 26400 THEN 19200e0 WHEN cal_left >= 24000 THEN 307200e0 WHEN cal_left >= 21600 THEN 4915200e0 WHEN cal_left >= 19200 THEN 78643200e0 WHEN cal_left >= 16800 THEN 1258291200e0 WHEN cal_left >= 14400 THEN 20132659200e0 WHEN cal_left >= 12000 THEN 322122547200e0 WHEN cal_left >= 9600 THEN 5153960755200e0 WHEN cal_left >= 7200 THEN 82463372083200e0 WHEN cal_left >= 4800 THEN 1319413953331200e0 WHEN cal_left >= 2400 THEN 21110623253299200e0 ELSE 337769972052787200e0 END AS cal_scale, (CAST(cal_left - CASE WHEN cal_left >= 28800 THEN 28800 WHEN cal_left >= 26400 THEN 26400 WHEN cal_left >= 24000 THEN 24000 WHEN cal_left >= 21600 THEN 21600 WHEN cal_left >= 19200 THEN 19200 WHEN cal_left >= 16800 THEN 16800 WHEN cal_left >= 14400 THEN 14400 WHEN cal_left >= 12000 THEN 12000 WHEN cal_left >= 9600 THEN 9600 WHEN cal_left >= 7200 THEN 7200 WHEN cal_left >= 4800 THEN 4800 WHEN cal_left >= 2400 THEN 2400 ELSE 0 END AS DOUBLE) - CASE WHEN cal_position > 0e0 THEN 1e0 ELSE 0e0 END) / 2e0 + cal_position / 268435456e0 AS cal_cells
  FROM cal_sides
),
cal_placed AS (
  SELECT day, site, cal_cell, cal_y, cal_n, CASE WHEN cal_right = 1 THEN cal_scale - cal_cells ELSE cal_cells END / cal_scale AS cal_c
  FROM cal_levels
),
cal_gaps AS (
  SELECT day, site, cal_y, cal_n, cal_c, CASE WHEN cal_cell <= 28960 THEN 0 WHEN cal_cell <= 29120 THEN 1 WHEN cal_cell <= 29280 THEN 2 WHEN cal_cell <= 29440 THEN 3 WHEN cal_cell <= 29600 THEN 4 WHEN cal_cell <= 29760 THEN 5 WHEN cal_cell <= 29920 THEN 6 WHEN cal_cell <= 30080 THEN 7 WHEN cal_cell <= 30240 THEN 8 WHEN cal_cell <= 30400 THEN 9 WHEN cal_cell <= 30560 THEN 10 WHEN cal_cell <= 30720 THEN 11 WHEN cal_cell <= 30880 THEN 12 WHEN cal_cell <= 31040 THEN 13 ELSE 14 END AS cal_bin, cal_c - cal_y AS cal_gap, (cal_c - cal_y) * (cal_c - cal_y) AS cal_loss
  FROM cal_placed
),
cal_means AS (
  SELECT day, site, cal_y, cal_n, cal_c, cal_bin, cal_gap, cal_loss, SUM(cal_n * cal_loss) OVER (PARTITION BY day, site) / SUM(cal_n) OVER (PARTITION BY day, site) AS cal_mean_loss, SUM(cal_n * cal_gap) OVER (PARTITION BY day, site) / SUM(cal_n) OVER (PARTITION BY day, site) AS cal_mean_gap
  FROM cal_gaps
),
cal_bins AS (
  SELECT day, site, cal_bin, SUM(cal_n) AS bin_rows, SUM(cal_n * cal_y) AS bin_observed, SUM(cal_n * cal_c) AS bin_expected, SUM(cal_n * cal_c * cal_c) AS bin_squares, SUM(cal_n * cal_loss) AS bin_losses, SUM(cal_n * cal_gap) AS bin_gaps, SUM(cal_n * (cal_loss - cal_mean_loss) * (cal_loss - cal_mean_loss)) AS bin_loss_spread, SUM(cal_n * (cal_gap - cal_mean_gap) * (cal_gap - cal_mean_gap)) AS bin_gap_spread
  FROM cal_means GROUP BY day, site, cal_bin
),
cal_segments AS (
  SELECT day, site, SUM(bin_rows) AS cal_rows, SUM(bin_observed) AS cal_observed, SUM(bin_expected) AS cal_expected, SUM(bin_squares) AS cal_squares, SUM(bin_losses) AS cal_losses, SUM(bin_gaps) AS cal_gaps, SUM(bin_loss_spread) AS cal_loss_spread, SUM(bin_gap_spread) AS cal_gap_spread, SUM(ABS(bin_gaps)) AS cal_bin_gaps
  FROM cal_bins GROUP BY day, site
)
SELECT day, site, CAST(cal_rows AS BIGINT) AS n,
  CAST(cal_observed AS BIGINT) AS observed,
  cal_expected AS expected,
  cal_bin_gaps / cal_rows AS ece,
  cal_losses / cal_rows AS brier,
  CASE WHEN cal_losses / cal_rows - 1.95996398454005405e+00 * SQRT(cal_loss_spread / cal_rows / NULLIF(cal_rows - 1e0, 0e0)) < 0e0 THEN 0e0 ELSE cal_losses / cal_rows - 1.95996398454005405e+00 * SQRT(cal_loss_spread / cal_rows / NULLIF(cal_rows - 1e0, 0e0)) END AS brier_low,
  CASE WHEN cal_losses / cal_rows + 1.95996398454005405e+00 * SQRT(cal_loss_spread / cal_rows / NULLIF(cal_rows - 1e0, 0e0)) > 1e0 THEN 1e0 ELSE cal_losses / cal_rows + 1.95996398454005405e+00 * SQRT(cal_loss_spread / cal_rows / NULLIF(cal_rows - 1e0, 0e0)) END AS brier_high,
  cal_observed / NULLIF(cal_expected, 0e0) AS oe,
  CASE WHEN (2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) < SQRT(CASE WHEN ((2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) * (2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) - 4e0 * (cal_expected * cal_expected + 3.84145882069412536e+00 * cal_squares) * (cal_observed * cal_observed - 3.84145882069412536e+00 * (CASE WHEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) > 0e0 THEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) ELSE 0e0 END))) > 0e0 THEN ((2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) * (2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) - 4e0 * (cal_expected * cal_expected + 3.84145882069412536e+00 * cal_squares) * (cal_observed * cal_observed - 3.84145882069412536e+00 * (CASE WHEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) > 0e0 THEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) ELSE 0e0 END))) ELSE 0e0 END) THEN 0e0 ELSE ((2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) - SQRT(CASE WHEN ((2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) * (2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) - 4e0 * (cal_expected * cal_expected + 3.84145882069412536e+00 * cal_squares) * (cal_observed * cal_observed - 3.84145882069412536e+00 * (CASE WHEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) > 0e0 THEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) ELSE 0e0 END))) > 0e0 THEN ((2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) * (2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) - 4e0 * (cal_expected * cal_expected + 3.84145882069412536e+00 * cal_squares) * (cal_observed * cal_observed - 3.84145882069412536e+00 * (CASE WHEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) > 0e0 THEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) ELSE 0e0 END))) ELSE 0e0 END)) / NULLIF(2e0 * (cal_expected * cal_expected + 3.84145882069412536e+00 * cal_squares), 0e0) END AS oe_low,
  ((2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) + SQRT(CASE WHEN ((2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) * (2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) - 4e0 * (cal_expected * cal_expected + 3.84145882069412536e+00 * cal_squares) * (cal_observed * cal_observed - 3.84145882069412536e+00 * (CASE WHEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) > 0e0 THEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) ELSE 0e0 END))) > 0e0 THEN ((2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) * (2e0 * cal_observed * cal_expected + 3.84145882069412536e+00 * cal_expected) - 4e0 * (cal_expected * cal_expected + 3.84145882069412536e+00 * cal_squares) * (cal_observed * cal_observed - 3.84145882069412536e+00 * (CASE WHEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) > 0e0 THEN (2e0 * (cal_observed / NULLIF(cal_expected, 0e0)) * ((cal_observed / NULLIF(cal_expected, 0e0)) * cal_squares - (cal_squares + cal_observed - cal_losses) / 2e0)) ELSE 0e0 END))) ELSE 0e0 END)) / NULLIF(2e0 * (cal_expected * cal_expected + 3.84145882069412536e+00 * cal_squares), 0e0) AS oe_high,
  cal_gaps / cal_rows AS bias,
  cal_gaps / cal_rows - 1.95996398454005405e+00 * SQRT(cal_gap_spread / cal_rows / NULLIF(cal_rows - 1e0, 0e0)) AS bias_low,
  cal_gaps / cal_rows + 1.95996398454005405e+00 * SQRT(cal_gap_spread / cal_rows / NULLIF(cal_rows - 1e0, 0e0)) AS bias_high
FROM cal_segments
