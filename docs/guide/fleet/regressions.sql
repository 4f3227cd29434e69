-- Versions of a binary against the ones before (by first appearance): CPU time of a host and share of each node, with
-- the interval over hosts at 95 % for all comparisons together (Bonferroni; Student's t by Cornish and Fisher). Hosts
-- are compared with hosts of their own processor, instance type and source, hour by hour: the load of the day cancels.
WITH hosts AS (
  SELECT host, start_ms, seconds,
         CONCAT(COALESCE(processor, ''), '|', COALESCE(instance_type, '')) AS kind,
         CAST(FLOOR(CAST(start_ms AS DOUBLE) / 3600000e0) AS BIGINT) AS hour_number
  FROM windows
  WHERE seconds > 0
), spent AS (
  SELECT host, start_ms, module, build_id, SUM(CAST(ROUND(cpu_seconds * 1e6) AS BIGINT)) AS us
  FROM functions
  WHERE module IS NOT NULL AND build_id IS NOT NULL AND cpu_seconds IS NOT NULL
  GROUP BY host, start_ms, module, build_id
), several AS (
  SELECT module FROM spent GROUP BY module HAVING COUNT(DISTINCT build_id) > 1
), usage_by_hour AS (
  SELECT s.module, s.build_id, h.kind, s.host, h.hour_number, 'cpu' AS metric, SUM(s.us) AS part,
         SUM(CAST(ROUND(h.seconds * 1e6) AS BIGINT)) AS whole
  FROM spent s
  JOIN several v ON v.module = s.module
  JOIN hosts h ON h.host = s.host AND h.start_ms = s.start_ms
  GROUP BY s.module, s.build_id, h.kind, s.host, h.hour_number
  HAVING SUM(s.us) > 0
), nodes_by_hour AS (
  SELECT n.module, n.build_id, CONCAT(h.kind, '|', n.source) AS kind, n.host, h.hour_number, n.node AS metric,
         SUM(CAST(ROUND(n.share * n.cpu_seconds * 1e6) AS BIGINT)) AS part,
         SUM(CAST(ROUND(n.cpu_seconds * 1e6) AS BIGINT)) AS whole
  FROM nodes n
  JOIN several v ON v.module = n.module
  JOIN hosts h ON h.host = n.host AND h.start_ms = n.start_ms
  WHERE n.build_id IS NOT NULL AND n.socket IS NULL AND n.share IS NOT NULL AND n.cpu_seconds > 0 AND n.level <= 2
    AND LOWER(n.node) NOT IN ('retiring', 'unexplained') AND LOWER(COALESCE(n.parent, '')) <> 'retiring'
  GROUP BY n.module, n.build_id, CONCAT(h.kind, '|', n.source), n.host, h.hour_number, n.node
), valued AS (
  SELECT module, build_id, kind, host, hour_number, metric,
         CAST(ROUND(LN(CAST(part AS DOUBLE) / CAST(whole AS DOUBLE)) * 1e6) AS BIGINT) AS y
  FROM usage_by_hour
  UNION ALL
  SELECT module, build_id, kind, host, hour_number, metric,
         CAST(ROUND(CAST(part AS DOUBLE) / CAST(whole AS DOUBLE) * 1e6) AS BIGINT) AS y
  FROM nodes_by_hour
), hourly AS (
  SELECT module, kind, metric, hour_number,
         CAST(ROUND(CAST(SUM(y) AS DOUBLE) / CAST(COUNT(*) AS DOUBLE)) AS BIGINT) AS mean_y
  FROM valued
  GROUP BY module, kind, metric, hour_number
), by_host AS (
  SELECT v.module, v.build_id, v.kind, v.metric, v.host,
         CAST(ROUND(CAST(SUM(v.y - h.mean_y) AS DOUBLE) / CAST(COUNT(*) AS DOUBLE)) AS BIGINT) AS y
  FROM valued v
  JOIN hourly h ON h.module = v.module AND h.kind = v.kind AND h.metric = v.metric AND h.hour_number = v.hour_number
  GROUP BY v.module, v.build_id, v.kind, v.metric, v.host
  HAVING COUNT(*) >= 3
), moments AS (
  SELECT module, build_id, kind, metric, CAST(COUNT(*) AS DOUBLE) AS n, CAST(SUM(y) AS DOUBLE) AS s1,
         CAST(SUM(y * y) AS DOUBLE) AS s2
  FROM by_host
  GROUP BY module, build_id, kind, metric
  HAVING COUNT(*) >= 5
), groups_of AS (
  SELECT module, build_id, kind, metric, n, s1 / n AS mean_y,
         GREATEST(s2 - s1 * s1 / n, 1e0) / (n - 1e0) / n AS var_mean
  FROM moments
), versions AS (
  SELECT module, build_id, ROW_NUMBER() OVER (PARTITION BY module ORDER BY first_ms, build_id) AS place
  FROM (SELECT module, build_id, MIN(start_ms) AS first_ms FROM spent GROUP BY module, build_id) seen
), pairs AS (
  SELECT a.module, a.build_id AS build_before, b.build_id AS build_after, ga.kind, ga.metric, ga.n AS na, gb.n AS nb,
         gb.mean_y - ga.mean_y AS d, ga.var_mean AS va, gb.var_mean AS vb, ga.n * gb.n / (ga.n + gb.n) AS w
  FROM versions a
  JOIN versions b ON b.module = a.module AND b.place = a.place + 1
  JOIN groups_of ga ON ga.module = a.module AND ga.build_id = a.build_id
  JOIN groups_of gb ON gb.module = b.module AND gb.build_id = b.build_id AND gb.kind = ga.kind AND gb.metric = ga.metric
), ordered AS (
  -- One row after the other in order of kind, as sums of fractions depend on it.
  SELECT module, build_before, build_after, metric,
         CAST(SUM(CAST(na AS BIGINT)) AS BIGINT) AS hosts_before, CAST(SUM(CAST(nb AS BIGINT)) AS BIGINT) AS hosts_after,
         CAST(SUM(CAST(ROUND(w * 1e3) AS BIGINT)) AS DOUBLE) / 1e3 AS w,
         CAST(SUM(CAST(ROUND(w * d * 1e3) AS BIGINT)) AS DOUBLE) / 1e3 AS wd,
         CAST(SUM(CAST(ROUND(w * w * (va + vb)) AS BIGINT)) AS DOUBLE) AS wwv,
         CAST(SUM(CAST(ROUND(w * w * va / 1e3 * (w * w * va / 1e3) / (na - 1e0)
           + w * w * vb / 1e3 * (w * w * vb / 1e3) / (nb - 1e0)) AS DECIMAL(38, 0))) AS DOUBLE) * 1e6 AS wwvv
  FROM pairs
  GROUP BY module, build_before, build_after, metric
), compared AS (
  SELECT module, build_before, build_after, metric, hosts_before, hosts_after, wd / w AS d,
         SQRT(wwv) / w AS se, wwv * wwv / GREATEST(wwvv, 1e0) AS df
  FROM ordered
), tail AS (
  SELECT SQRT(-2e0 * LN(0.05e0 / 2e0 / CAST(GREATEST(COUNT(*), 1) AS DOUBLE))) AS q FROM compared
), normal AS (
  SELECT q - (2.515517e0 + 0.802853e0 * q + 0.010328e0 * q * q)
           / (1e0 + 1.432788e0 * q + 0.189269e0 * q * q + 0.001308e0 * q * q * q) AS z
  FROM tail
), bounded AS (
  SELECT module, build_before, build_after, metric, hosts_before, hosts_after, d,
         se * (z + (z * z * z + z) / (4e0 * df)
               + (5e0 * z * z * z * z * z + 16e0 * z * z * z + 3e0 * z) / (96e0 * df * df)
               + (3e0 * z * z * z * z * z * z * z + 19e0 * z * z * z * z * z + 17e0 * z * z * z - 15e0 * z)
                 / (384e0 * df * df * df)) AS e
  FROM compared CROSS JOIN normal
), percent AS (
  SELECT module, build_before, build_after, metric, hosts_before, hosts_after,
         CASE WHEN metric = 'cpu' THEN ROUND((EXP(d / 1e6) - 1e0) * 1e4) / 1e2 ELSE ROUND(d / 1e2) / 1e2 END AS change,
         CASE WHEN metric = 'cpu' THEN ROUND((EXP((d - e) / 1e6) - 1e0) * 1e4) / 1e2
              ELSE ROUND((d - e) / 1e2) / 1e2 END AS low,
         CASE WHEN metric = 'cpu' THEN ROUND((EXP((d + e) / 1e6) - 1e0) * 1e4) / 1e2
              ELSE ROUND((d + e) / 1e2) / 1e2 END AS high
  FROM bounded
)
SELECT module, build_before, build_after, metric, hosts_before, hosts_after, change, low, high,
       CASE WHEN low > 0e0 THEN 'regressed' WHEN high < 0e0 THEN 'improved' ELSE 'same' END AS verdict
FROM percent
ORDER BY CASE WHEN low > 0e0 THEN 0 WHEN high < 0e0 THEN 1 ELSE 2 END, module, build_before, build_after,
         CASE WHEN metric = 'cpu' THEN '' ELSE metric END
