-- The functions that hosts spend most of their time in, each host counted once: the mean share of the sampled time of
-- a host (0 where it does not run there), and what the binary's losses take of it.
WITH spent AS (
  SELECT host, module, COALESCE(build_id, '') AS build_id, COALESCE(name, function_start, '?') AS function_name,
         SUM(CAST(ROUND(cpu_seconds * 1e6) AS BIGINT)) AS us
  FROM functions
  WHERE module IS NOT NULL AND cpu_seconds IS NOT NULL
  GROUP BY host, module, COALESCE(build_id, ''), COALESCE(name, function_start, '?')
), totals AS (
  SELECT host, SUM(us) AS host_us FROM spent GROUP BY host HAVING SUM(us) > 0
), fleet AS (
  SELECT COUNT(*) AS all_hosts FROM totals
), retired AS (
  SELECT host, module, COALESCE(build_id, '') AS build_id,
         SUM(CAST(ROUND(share * cpu_seconds * 1e6) AS BIGINT)) AS retired_us,
         SUM(CAST(ROUND(cpu_seconds * 1e6) AS BIGINT)) AS known_us
  FROM nodes
  WHERE module IS NOT NULL AND socket IS NULL AND share IS NOT NULL AND cpu_seconds > 0 AND LOWER(node) = 'retiring'
  GROUP BY host, module, COALESCE(build_id, '')
), each_host AS (
  SELECT s.module, s.build_id, s.function_name, s.host, s.us,
         CAST(ROUND(CAST(s.us AS DOUBLE) * 1e9 / CAST(t.host_us AS DOUBLE)) AS BIGINT) AS share_ppb,
         CAST(ROUND(CAST(s.us AS DOUBLE) * (1e0 - CAST(r.retired_us AS DOUBLE) / CAST(r.known_us AS DOUBLE))) AS BIGINT)
           AS wasted_us
  FROM spent s
  JOIN totals t ON t.host = s.host
  LEFT JOIN retired r ON r.host = s.host AND r.module = s.module AND r.build_id = s.build_id
), summed AS (
  SELECT module, build_id, function_name, COUNT(*) AS hosts, SUM(us) AS us, SUM(share_ppb) AS share_ppb,
         SUM(wasted_us) AS wasted_us
  FROM each_host
  GROUP BY module, build_id, function_name
)
SELECT module, build_id, function_name, hosts,
       ROUND(CAST(share_ppb AS DOUBLE) / CAST(all_hosts AS DOUBLE) / 1e3) / 1e4 AS mean_percent,
       ROUND(CAST(us AS DOUBLE) / 1e3) / 1e3 AS cpu_seconds,
       ROUND(CAST(wasted_us AS DOUBLE) / 1e3) / 1e3 AS wasted_cpu_seconds
FROM summed CROSS JOIN fleet
ORDER BY share_ppb DESC, module, build_id, function_name
LIMIT 100
