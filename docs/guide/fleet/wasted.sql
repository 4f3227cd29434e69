-- Where the fleet loses slots: by binary and node of level 1 and 2. CPU seconds are the share of the time of the
-- binary; slots are null where none were counted. Sums are of whole microseconds, so that their order does not matter.
WITH lost AS (
  SELECT host, module, COALESCE(build_id, '') AS build_id, node, level, source,
         CAST(ROUND(share * cpu_seconds * 1e6) AS BIGINT) AS us,
         CAST(ROUND(share * slots / 1e3) AS BIGINT) AS kslots
  FROM nodes
  WHERE module IS NOT NULL AND socket IS NULL AND share IS NOT NULL AND level <= 2
    AND LOWER(node) NOT IN ('retiring', 'unexplained') AND LOWER(COALESCE(parent, '')) <> 'retiring'
), summed AS (
  SELECT module, build_id, node, level, source, COUNT(DISTINCT host) AS hosts, SUM(us) AS us, SUM(kslots) AS kslots
  FROM lost
  GROUP BY module, build_id, node, level, source
)
SELECT module, build_id, node, level, source, hosts,
       ROUND(CAST(us AS DOUBLE) / 1e3) / 1e3 AS cpu_seconds,
       ROUND(CAST(kslots AS DOUBLE) / 1e3) / 1e3 AS giga_slots
FROM summed
WHERE us > 0 OR kslots > 0
ORDER BY COALESCE(us, 0) DESC, COALESCE(kslots, 0) DESC, module, build_id, level, node, source
LIMIT 100
