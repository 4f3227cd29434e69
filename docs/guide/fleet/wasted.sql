-- What the fleet loses: by binary and node of level 1 and 2, the node's share of the binary's CPU seconds. Sums are of
-- whole microseconds, so that their order does not matter.
WITH lost AS (
  SELECT host, module, COALESCE(build_id, '') AS build_id, node, level, source,
         CAST(ROUND(share * cpu_seconds * 1e6) AS BIGINT) AS us
  FROM nodes
  WHERE module IS NOT NULL AND socket IS NULL AND share IS NOT NULL AND level <= 2
    AND LOWER(node) NOT IN ('retiring', 'unexplained') AND LOWER(COALESCE(parent, '')) <> 'retiring'
), summed AS (
  SELECT module, build_id, node, level, source, COUNT(DISTINCT host) AS hosts, SUM(us) AS us
  FROM lost
  GROUP BY module, build_id, node, level, source
)
SELECT module, build_id, node, level, source, hosts,
       ROUND(CAST(us AS DOUBLE) / 1e3) / 1e3 AS cpu_seconds
FROM summed
WHERE us > 0
ORDER BY us DESC, module, build_id, level, node, source
LIMIT 100
