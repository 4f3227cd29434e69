-- Strings, a hash, sorts and calls.
local n = tonumber(arg and arg[1]) or 1
local t = {}
for i = 1, 20000 * n do t[#t+1] = (i * 7919) % 10007 .. "k" end
table.sort(t)
local h = 0
for _, s in ipairs(t) do for c in s:gmatch("%d") do h = (h * 31 + tonumber(c)) % 1000003 end end
local function fib(x) if x < 2 then return x end return fib(x-1) + fib(x-2) end
local q = {}
for i = 1, 3000 * n do q[i % 97] = (q[i % 97] or 0) + i end
local s = {} for k, v in pairs(q) do s[#s+1] = v end table.sort(s)
print(h, fib(20 + n), #t, table.concat(s, ",", 1, 5))
