-- The same binary on different instance types: CPU time per CPU of a host, against the type that takes least, with the
-- interval over hosts at 95 % for all pairs of types together; and the cost of that time (label cost_per_hour),
-- against the cheapest. Hosts are taken to get work in proportion to their CPUs.
WITH hosts AS (
  SELECT host, start_ms, seconds, cpus, cost_per_hour, COALESCE(instance_type, '') AS instance_type,
         COALESCE(processor, '') AS processor
  FROM windows
  WHERE seconds > 0 AND cpus > 0
), spent AS (
  SELECT host, start_ms, module, build_id, SUM(CAST(ROUND(cpu_seconds * 1e6) AS BIGINT)) AS us
  FROM functions
  WHERE module IS NOT NULL AND build_id IS NOT NULL AND cpu_seconds IS NOT NULL
  GROUP BY host, start_ms, module, build_id
), by_host AS (
  SELECT s.module, s.build_id, h.instance_type, h.processor, s.host, MAX(h.cost_per_hour) AS cost_per_hour,
         MAX(h.cpus) AS cpus, SUM(s.us) AS us,
         SUM(CAST(ROUND(h.seconds * CAST(h.cpus AS DOUBLE) * 1e6) AS BIGINT)) AS whole
  FROM spent s
  JOIN hosts h ON h.host = s.host AND h.start_ms = s.start_ms
  GROUP BY s.module, s.build_id, h.instance_type, h.processor, s.host
  HAVING SUM(s.us) > 0
), valued AS (
  SELECT module, build_id, instance_type, processor, cost_per_hour / CAST(cpus AS DOUBLE) AS cost,
         CAST(ROUND(LN(CAST(us AS DOUBLE) / CAST(whole AS DOUBLE)) * 1e6) AS BIGINT) AS y
  FROM by_host
), moments AS (
  SELECT module, build_id, instance_type, processor, MAX(cost) AS cost, COUNT(*) AS hosts,
         CAST(COUNT(*) AS DOUBLE) AS n, CAST(SUM(y) AS DOUBLE) AS s1, CAST(SUM(y * y) AS DOUBLE) AS s2
  FROM valued
  GROUP BY module, build_id, instance_type, processor
  HAVING COUNT(*) >= 5
), types AS (
  SELECT module, build_id, instance_type, processor, hosts, cost, n, s1 / n AS mean_y,
         GREATEST(s2 - s1 * s1 / n, 1e0) / (n - 1e0) / n AS v,
         ROW_NUMBER() OVER (PARTITION BY module, build_id ORDER BY s1 / n, instance_type, processor) AS place,
         COUNT(*) OVER (PARTITION BY module, build_id) AS types,
         MIN(s1 / n / 1e6 + LN(cost)) OVER (PARTITION BY module, build_id) AS least_cost
  FROM moments
), compared AS (
  SELECT t.module, t.build_id, t.instance_type, t.processor, t.hosts, t.place, t.mean_y, t.types,
         t.mean_y - b.mean_y AS d, SQRT(t.v + b.v) AS se,
         (t.v + b.v) * (t.v + b.v) / (t.v * t.v / (t.n - 1e0) + b.v * b.v / (b.n - 1e0)) AS df,
         t.mean_y / 1e6 + LN(t.cost) - t.least_cost AS cost
  FROM types t
  JOIN types b ON b.module = t.module AND b.build_id = t.build_id AND b.place = 1
  WHERE t.types > 1
), tail AS (
  SELECT SQRT(-2e0 * LN(0.05e0 / 2e0 / GREATEST(CAST(SUM(types - 1) AS DOUBLE) / 2e0, 1e0))) AS q FROM compared
), normal AS (
  SELECT q - (2.515517e0 + 0.802853e0 * q + 0.010328e0 * q * q)
           / (1e0 + 1.432788e0 * q + 0.189269e0 * q * q + 0.001308e0 * q * q * q) AS z
  FROM tail
), bounded AS (
  SELECT module, build_id, instance_type, processor, hosts, place, mean_y, d, cost,
         se * (z + (z * z * z + z) / (4e0 * df)
               + (5e0 * z * z * z * z * z + 16e0 * z * z * z + 3e0 * z) / (96e0 * df * df)
               + (3e0 * z * z * z * z * z * z * z + 19e0 * z * z * z * z * z + 17e0 * z * z * z - 15e0 * z)
                 / (384e0 * df * df * df)) AS e
  FROM compared CROSS JOIN normal
), percent AS (
  SELECT module, build_id, instance_type, processor, hosts, place, ROUND(EXP(mean_y / 1e6) * 1e5) / 1e3 AS cpu_percent,
         ROUND((EXP(d / 1e6) - 1e0) * 1e4) / 1e2 AS more,
         CASE WHEN place = 1 THEN 0e0 ELSE ROUND((EXP((d - e) / 1e6) - 1e0) * 1e4) / 1e2 END AS low,
         CASE WHEN place = 1 THEN 0e0 ELSE ROUND((EXP((d + e) / 1e6) - 1e0) * 1e4) / 1e2 END AS high,
         ROUND((EXP(cost) - 1e0) * 1e4) / 1e2 AS more_cost
  FROM bounded
)
SELECT module, build_id, instance_type, processor, hosts, cpu_percent, more, low, high, more_cost,
       CASE WHEN place = 1 THEN 'least' WHEN low > 0e0 THEN 'slower' ELSE 'same' END AS verdict
FROM percent
ORDER BY module, build_id, place
