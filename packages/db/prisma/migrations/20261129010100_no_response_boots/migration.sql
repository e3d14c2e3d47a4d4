-- not expand-only: an API of the release before reads these boots as an outcome that it does not know; there are as many as power-ons without an answer
WITH moved AS (
  UPDATE boot SET outcome = 'no_response' WHERE outcome = 'silent' AND failed_phase = 'firmware'
  RETURNING organization_id, site_id, started_at
), counted AS (
  SELECT organization_id, site_id, grain, date_trunc(grain, started_at, 'UTC') AS starts_at, count(*)::integer AS boots
  FROM moved, unnest(ARRAY['hour', 'day']) AS grain GROUP BY 1, 2, 3, 4
)
-- not expand-only: the sum of both columns stays
UPDATE boot_rollup SET silent_count = silent_count - counted.boots, no_response_count = no_response_count + counted.boots
FROM counted WHERE boot_rollup.organization_id = counted.organization_id AND boot_rollup.site_id = counted.site_id
  AND boot_rollup.grain = counted.grain::"RollupGrain" AND boot_rollup.starts_at = counted.starts_at;
-- not expand-only: the API of the release before only shows it
UPDATE device SET last_boot_outcome = 'no_response' FROM boot
WHERE boot.outcome = 'no_response' AND boot.organization_id = device.organization_id AND boot.id = device.last_boot_id;
