-- Counted against estimated hosts: the mean share of each node of each binary, with the interval of their difference
-- over hosts at 95 % for all comparisons together, and how many estimates' own intervals hold the counted mean.
-- Binaries are compared by name, as estimates know no build-ids, and nodes whatever the case, in which processors
-- differ.
WITH by_host AS (
  SELECT module, LOWER(node) AS node, level, source, host,
         CAST(ROUND(CAST(SUM(CAST(ROUND(share * cpu_seconds * 1e6) AS BIGINT)) AS DOUBLE) * 1e6
           / CAST(SUM(CAST(ROUND(cpu_seconds * 1e6) AS BIGINT)) AS DOUBLE)) AS BIGINT) AS y
  FROM nodes
  WHERE module IS NOT NULL AND socket IS NULL AND share IS NOT NULL AND level <= 2 AND source IN ('counted', 'estimated')
  GROUP BY module, LOWER(node), level, source, host
  HAVING SUM(CAST(ROUND(cpu_seconds * 1e6) AS BIGINT)) > 0
), moments AS (
  SELECT module, node, level, source, COUNT(*) AS hosts, CAST(COUNT(*) AS DOUBLE) AS n,
         CAST(SUM(y) AS DOUBLE) AS s1, CAST(SUM(y * y) AS DOUBLE) AS s2
  FROM by_host
  GROUP BY module, node, level, source
  HAVING COUNT(*) >= 5
), means AS (
  SELECT module, node, level, source, hosts, n, s1 / n AS mean_y,
         GREATEST(s2 - s1 * s1 / n, 1e0) / (n - 1e0) / n AS v
  FROM moments
), compared AS (
  SELECT c.module, c.node, c.level, c.hosts AS counted_hosts, e.hosts AS estimated_hosts,
         c.mean_y AS counted, e.mean_y AS estimated, SQRT(c.v + e.v) AS se,
         (c.v + e.v) * (c.v + e.v) / (c.v * c.v / (c.n - 1e0) + e.v * e.v / (e.n - 1e0)) AS df
  FROM means c
  JOIN means e ON e.module = c.module AND e.node = c.node AND e.level = c.level
  WHERE c.source = 'counted' AND e.source = 'estimated'
), held AS (
  SELECT c.module, c.node, c.level, COUNT(*) AS all_rows,
         SUM(CASE WHEN n.low <= c.counted / 1e6 AND n.high >= c.counted / 1e6 THEN 1 ELSE 0 END) AS held_rows
  FROM nodes n
  JOIN compared c ON c.module = n.module AND c.node = LOWER(n.node) AND c.level = n.level
  WHERE n.source = 'estimated' AND n.socket IS NULL AND n.share IS NOT NULL AND n.low IS NOT NULL
  GROUP BY c.module, c.node, c.level
), tail AS (
  SELECT SQRT(-2e0 * LN(0.05e0 / 2e0 / CAST(GREATEST(COUNT(*), 1) AS DOUBLE))) AS q FROM compared
), normal AS (
  SELECT q - (2.515517e0 + 0.802853e0 * q + 0.010328e0 * q * q)
           / (1e0 + 1.432788e0 * q + 0.189269e0 * q * q + 0.001308e0 * q * q * q) AS z
  FROM tail
), bounded AS (
  SELECT module, node, level, counted_hosts, estimated_hosts, counted, estimated, estimated - counted AS d,
         se * (z + (z * z * z + z) / (4e0 * df)
               + (5e0 * z * z * z * z * z + 16e0 * z * z * z + 3e0 * z) / (96e0 * df * df)
               + (3e0 * z * z * z * z * z * z * z + 19e0 * z * z * z * z * z + 17e0 * z * z * z - 15e0 * z)
                 / (384e0 * df * df * df)) AS e
  FROM compared CROSS JOIN normal
)
SELECT b.module, b.node, b.level, b.counted_hosts, b.estimated_hosts,
       ROUND(b.counted / 1e2) / 1e2 AS counted_percent, ROUND(b.estimated / 1e2) / 1e2 AS estimated_percent,
       ROUND(b.d / 1e2) / 1e2 AS difference, ROUND(b.e / 1e2) / 1e2 AS error,
       ROUND(CAST(h.held_rows AS DOUBLE) / CAST(h.all_rows AS DOUBLE) * 1e4) / 1e2 AS held_percent,
       CASE WHEN ABS(b.d) > b.e THEN 'differs' ELSE 'same' END AS verdict
FROM bounded b
LEFT JOIN held h ON h.module = b.module AND h.node = b.node AND h.level = b.level
ORDER BY b.module, b.level, b.node
