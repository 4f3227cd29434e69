-- What a fix would save: if a node no longer cost a function anything, in CPU seconds and money (label cost_per_hour)
-- of the sampled time. Nodes are of level 2, or of level 1 where the host knows no parts of it. A function is taken to
-- have the shares of its binary on its host; the interval is that of the shares, null where some have none.
WITH known AS (
  SELECT host, module, COALESCE(build_id, '') AS build_id, node, LOWER(parent) AS above, level, share, low, high,
         cpu_seconds
  FROM nodes
  WHERE module IS NOT NULL AND socket IS NULL AND share IS NOT NULL AND level <= 2 AND cpu_seconds > 0
    AND LOWER(node) NOT IN ('retiring', 'unexplained') AND LOWER(COALESCE(parent, '')) <> 'retiring'
), divided AS (
  SELECT DISTINCT host, module, build_id, above FROM known WHERE level = 2
), share_of AS (
  SELECT k.host, k.module, k.build_id, k.node,
         SUM(CAST(ROUND(share * cpu_seconds * 1e6) AS BIGINT)) AS us,
         SUM(CAST(ROUND(low * cpu_seconds * 1e6) AS BIGINT)) AS low_us,
         SUM(CAST(ROUND(high * cpu_seconds * 1e6) AS BIGINT)) AS high_us,
         SUM(CASE WHEN low IS NULL OR high IS NULL THEN 1 ELSE 0 END) AS unknown,
         SUM(CAST(ROUND(cpu_seconds * 1e6) AS BIGINT)) AS whole
  FROM known k
  LEFT JOIN divided d ON d.host = k.host AND d.module = k.module AND d.build_id = k.build_id AND d.above = LOWER(k.node)
  WHERE k.level = 2 OR d.above IS NULL
  GROUP BY k.host, k.module, k.build_id, k.node
), spent AS (
  SELECT host, module, COALESCE(build_id, '') AS build_id, COALESCE(name, function_start, '?') AS function_name,
         SUM(CAST(ROUND(cpu_seconds * 1e6) AS BIGINT)) AS us
  FROM functions
  WHERE module IS NOT NULL AND cpu_seconds IS NOT NULL
  GROUP BY host, module, COALESCE(build_id, ''), COALESCE(name, function_start, '?')
), price AS (
  SELECT host, MAX(cost_per_hour / CAST(cpus AS DOUBLE)) AS cpu_hour FROM windows WHERE cpus > 0 GROUP BY host
), saved AS (
  SELECT s.module, s.build_id, s.function_name, n.node, s.host, n.unknown,
         CAST(ROUND(CAST(s.us AS DOUBLE) * CAST(n.us AS DOUBLE) / CAST(n.whole AS DOUBLE)) AS BIGINT) AS us,
         CAST(ROUND(CAST(s.us AS DOUBLE) * CAST(n.low_us AS DOUBLE) / CAST(n.whole AS DOUBLE)) AS BIGINT) AS low_us,
         CAST(ROUND(CAST(s.us AS DOUBLE) * CAST(n.high_us AS DOUBLE) / CAST(n.whole AS DOUBLE)) AS BIGINT) AS high_us,
         CAST(ROUND(CAST(s.us AS DOUBLE) * CAST(n.us AS DOUBLE) / CAST(n.whole AS DOUBLE) * p.cpu_hour / 3.6e3)
           AS BIGINT) AS micro_cost
  FROM spent s
  JOIN share_of n ON n.host = s.host AND n.module = s.module AND n.build_id = s.build_id
  LEFT JOIN price p ON p.host = s.host
), summed AS (
  SELECT module, build_id, function_name, node, COUNT(DISTINCT host) AS hosts, SUM(us) AS us, SUM(low_us) AS low_us,
         SUM(high_us) AS high_us, SUM(unknown) AS unknown, SUM(micro_cost) AS micro_cost
  FROM saved
  GROUP BY module, build_id, function_name, node
)
SELECT module, build_id, function_name, node, hosts,
       ROUND(CAST(us AS DOUBLE) / 1e3) / 1e3 AS cpu_seconds,
       CASE WHEN unknown = 0 THEN ROUND(CAST(low_us AS DOUBLE) / 1e3) / 1e3 END AS low,
       CASE WHEN unknown = 0 THEN ROUND(CAST(high_us AS DOUBLE) / 1e3) / 1e3 END AS high,
       ROUND(CAST(micro_cost AS DOUBLE) / 1e2) / 1e4 AS cost
FROM summed
WHERE us > 0
ORDER BY us DESC, module, build_id, function_name, node
LIMIT 100
