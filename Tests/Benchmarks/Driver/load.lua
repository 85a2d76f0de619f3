-- SPDX-License-Identifier: Apache-2.0
--
-- What wrk sends, and how it judges the answers:
--
--     wrk ... URL -- KIND FILE WRITES
--
-- KIND is `push` (to Ubiquity), `seal` (the same to a sealed account), `put` (to etcd) or `get`. FILE has a line for each account, a credential
-- and a path. Each thread takes accounts of its own, in turn. WRITES is the number of writes in a push.
-- Each account has several groups of keys, so that no key is written again before the last write of it
-- was answered. Prints one line of JSON.

local ffi = require("ffi")
ffi.cdef [[
    typedef struct { long seconds, nanoseconds; } benchmark_time;
    int clock_gettime(int clock, benchmark_time *time);
]]
local time = ffi.new("benchmark_time")
local last, last_text

local function milliseconds()
    ffi.C.clock_gettime(0, time)
    local now = tonumber(time.seconds) * 1000 + math.floor(tonumber(time.nanoseconds) / 1e6)
    if now ~= last then last, last_text = now, string.format("%.0f", now) end
    return last_text
end

local threads = {}

function setup(thread)
    thread:set("number", #threads)
    thread:set("wrong", 0)
    table.insert(threads, thread)
end

local json = "Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: "

-- The first half of a request, by the number of the request, and how many accounts there are. In place of
-- lines, the file may have one with a pattern for credentials, a path, and the number of accounts.
local function heads(file, method, ending)
    local function head(credential, path)
        local bearer = credential == "-" and "" or "Authorization: Bearer " .. credential .. "\r\n"
        return string.format("%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s", method, path, bearer, ending)
    end
    local text = io.open(file):read("*a")
    local pattern, path, number_of_all = string.match(text, "^(%S*%%%S*) (%S+) (%d+)")
    if pattern then
        local size = math.floor(number_of_all / threadCount)
        -- Each once, in an order without neighbours: 309017 has no factor in common with a power of ten.
        return function(count)
            return head(string.format(pattern, count * 309017 % size * threadCount + number), path)
        end, size
    end
    local own = {}
    local line = 0
    for credential, path in string.gmatch(text, "(%S+) (%S+)") do
        if line % threadCount == number then table.insert(own, head(credential, path)) end
        line = line + 1
    end
    return function(count) return own[count % #own + 1] end, #own
end

local function with(body) return #body .. "\r\n\r\n" .. body end

-- How many groups of keys an account has: 2,048 requests later, a key's turn comes again. A store has
-- room for 1,024 keys.
local function groups(size, writes)
    return math.floor(math.min(math.max(8, 2048 / size), 1000 / writes))
end

local makers = {}

-- `value` is the beginning of each value, `rest` what follows eight digits, and `ending` that of the push.
local function pushes(file, writes, value, rest, ending)
    local head, size = heads(file, "POST", json)
    local own, keys, list = groups(size, writes), {}, {}
    for key = 1, own * writes do keys[key] = '{"key":"key-' .. key .. '","value":' .. value end
    request = function()
        local group = math.floor(count / size) % own * writes
        local rest = 10000000 + count .. rest .. ',"milliseconds":"' .. milliseconds() .. '","counter":'
            .. count % 65536 .. "}"
        for index = 1, writes do list[index] = keys[group + index] .. rest end
        count = count + 1
        return head(count - 1)
            .. with('{"transactions":[{"writes":[' .. table.concat(list, ",") .. "]}]" .. ending .. "}")
    end
    local all = string.rep('{"applied":true}', writes, ",")
    response = function(status, _, body)
        if status ~= 200 or not string.find(body, all, 1, true) then
            wrong = wrong + 1
            example = status .. " " .. body
        end
    end
end

function makers.push(file, writes) pushes(file, writes, '{"string":"value ', '"}', "") end

-- What a device makes of the same values: a digest, and a box of 49 bytes.
function makers.seal(file, writes)
    pushes(file, writes, '{"sealed":{"generation":1,"box":"AQ', string.rep("A", 56) .. '=="}},"digest":"77"', ',"generation":1')
end

-- Keys and values of the same sizes; digits are base64 already.
function makers.put(file)
    local head, size = heads(file, "POST", json)
    local own = groups(size, 1)
    request = function()
        local group = math.floor(count / size) % own
        local body = string.format(
            '{"key":"%04d%04d","value":"%020d"}', count % size * threadCount + number, group, count)
        count = count + 1
        return head(count - 1) .. with(body)
    end
    response = function(status, _, body)
        if status ~= 200 or not string.find(body, '"revision"', 1, true) then
            wrong = wrong + 1
            example = status .. " " .. body
        end
    end
end

-- Only their status is checked, which wrk does itself.
function makers.get(file, writes, accept)
    local head, size = heads(file, "GET", "Accept: " .. accept .. "\r\n\r\n")
    request = function()
        count = count + 1
        return head(count)
    end
end

function init(arguments)
    -- Each run begins elsewhere among the accounts.
    math.randomseed(os.time())
    count = math.random(0, 1000000)
    threadCount = tonumber(arguments[3])
    makers[arguments[1]](arguments[2], tonumber(arguments[4]), arguments[5])
end

function done(summary, latency)
    local wrong, example = 0, ""
    for _, thread in ipairs(threads) do
        wrong = wrong + thread:get("wrong")
        example = thread:get("example") or example
    end
    local errors = summary.errors
    local shares = {}
    for share = 0, 999 do shares[share + 1] = latency:percentile(share / 10) end
    io.write(string.format(
        '{"requests":%d,"microseconds":%d,"bytes":%d,"failed":%d,"wrong":%d,"example":%q,"p1000":[%s]}\n',
        summary.requests, summary.duration, summary.bytes,
        errors.connect + errors.read + errors.write + errors.timeout, wrong + errors.status, example,
        table.concat(shares, ",")))
end
