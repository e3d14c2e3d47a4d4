//! LZ4 blocks (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md, 2022-07): a short code
//! for what repeats within one unit of at most 64 KiB. `pack` is fast, `packSmall` takes about ten
//! times as long for a smaller result, and `unpack` reads both. Units are packed each by itself.
//! Pure; memory is the caller's, and no input makes it read or write outside of its buffers.

const std = @import("std");
const assert = std.debug.assert;

/// Offsets are 16 bits wide.
pub const unit_size_max = 64 << 10;

const match_size_min = 4;
/// The last bytes of a unit are literals, and no match begins in the last twelve (end of block
/// conditions).
const literals_last_min = 5;
const match_start_last = 12;
const short_max = 15;
const copy_size = 16;

comptime {
    assert(match_copied == 18);
    // A short sequence fills no more than is free.
    assert(short_max - 1 + match_copied <= 2 * copy_size + 4);
}

/// What nothing packs into fewer bytes has this size more.
pub fn sizeMax(size: usize) usize {
    return size + size / 255 + 16;
}

pub const Error = error{Corrupt};

/// Fills `unit` from what a packer made of it. Any other input, also one of another size, is
/// refused; then `unit` has arbitrary bytes.
pub fn unpack(unit: []u8, from: []const u8) Error!void {
    try unpackUpTo(unit, from, unit.len);
}

/// Like `unpack`, for the first `size` bytes of `unit` alone; the others are arbitrary. Does not
/// look at what follows them in `from`.
pub fn unpackStart(unit: []u8, from: []const u8, size: usize) Error!void {
    assert(size <= unit.len);
    try unpackUpTo(unit, from, size);
}

fn unpackUpTo(unit: []u8, from: []const u8, wanted: usize) Error!void {
    var at: usize = 0;
    var done: usize = 0;
    // The end of a whole unit is checked, too.
    while (done < wanted or wanted == unit.len) {
        unpackShort(unit, from, wanted, &at, &done);
        if (at >= from.len) return error.Corrupt;
        const token = from[at];
        at += 1;
        const literals = try length(from, &at, token >> 4);
        if (literals > from.len - at or literals > unit.len - done) return error.Corrupt;
        if (literals <= copy_size and from.len - at >= copy_size and unit.len - done >= copy_size)
            unit[done..][0..copy_size].* = from[at..][0..copy_size].*
        else
            @memcpy(unit[done..][0..literals], from[at..][0..literals]);
        at += literals;
        done += literals;
        if (at == from.len) return if (done == unit.len) {} else error.Corrupt;
        if (from.len - at < 2) return error.Corrupt;
        const offset = std.mem.readInt(u16, from[at..][0..2], .little);
        at += 2;
        if (offset == 0 or offset > done) return error.Corrupt;
        const size = match_size_min + try length(from, &at, token & short_max);
        if (size > unit.len - done) return error.Corrupt;
        repeat(unit, done, offset, size);
        done += size;
    }
}

/// Of a token, the literals behind it and an offset.
const sequence_copied = 1 + copy_size + 2;
/// Bytes that a short match is copied as.
const match_copied = short_max - 1 + match_size_min;

/// Takes the usual sequences: few literals and a short match that does not repeat itself at once,
/// with room behind both, so that whole words are copied. Stops before any other sequence, and with
/// the wanted bytes.
fn unpackShort(
    unit: []u8,
    from: []const u8,
    wanted: usize,
    at: *usize,
    done: *usize,
) void {
    const end = @min(wanted, unit.len -| (2 * copy_size + 3));
    while (from.len - at.* >= sequence_copied and done.* < end) {
        const sequence = from[at.*..][0..sequence_copied];
        const literals: usize = sequence[0] >> 4;
        const matched: usize = sequence[0] & short_max;
        if (literals == short_max or matched == short_max) return;
        const offset = std.mem.readInt(u16, sequence[1 + literals ..][0..2], .little);
        const to = done.* + literals;
        if (offset < 8 or offset > to) return;
        unit[done.*..][0..copy_size].* = sequence[1..][0..copy_size].*;
        const source = unit[to - offset ..][0..match_copied];
        const match = unit[to..][0..match_copied];
        match[0..8].* = source[0..8].*;
        match[8..16].* = source[8..16].*;
        match[16..18].* = source[16..18].*;
        at.* += 3 + literals;
        done.* = to + match_size_min + matched;
    }
}

fn length(from: []const u8, at: *usize, short: u8) Error!usize {
    var size: usize = short;
    if (short < short_max) return size;
    while (at.* < from.len) {
        const more = from[at.*];
        at.* += 1;
        size += more;
        if (more < 255) return size;
    }
    return error.Corrupt;
}

/// Copies `size` bytes from `offset` before `to`; the copy may repeat itself.
fn repeat(unit: []u8, to: usize, offset: usize, size: usize) void {
    const source = to - offset;
    if (offset >= copy_size and unit.len - to >= size + copy_size) {
        var copied: usize = 0;
        while (copied < size) : (copied += copy_size)
            unit[to + copied ..][0..copy_size].* = unit[source + copied ..][0..copy_size].*;
        return;
    }
    if (offset >= 8 and unit.len - to >= size + 8) {
        var copied: usize = 0;
        while (copied < size) : (copied += 8)
            unit[to + copied ..][0..8].* = unit[source + copied ..][0..8].*;
        return;
    }
    if (offset == 1) return @memset(unit[to..][0..size], unit[source]);
    for (unit[to..][0..size], unit[source..][0..size]) |*byte, earlier| byte.* = earlier;
}

/// Packs quickly. Returns the size, or null if the result does not fit into `to`.
pub fn pack(table: *Table, to: []u8, unit: []const u8) ?usize {
    assert(unit.len <= unit_size_max);
    var writer: Writer = .{ .to = to };
    var from: usize = 0;
    if (unit.len > match_start_last) {
        @memset(&table.places, 0);
        const last = unit.len - match_start_last;
        const end = unit.len - literals_last_min;
        var at: usize = 1;
        // Where nothing repeats, it looks less and less often.
        var misses: usize = 1 << miss_shift;
        while (at <= last) {
            const word = wordAt(unit, at);
            const place = &table.places[hash(word, table_bits)];
            const earlier: usize = place.*;
            place.* = @intCast(at);
            if (wordAt(unit, earlier) != word or earlier >= at) {
                at += misses >> miss_shift;
                misses += 1;
                continue;
            }
            var start = at;
            var source = earlier;
            while (start > from and source > 0 and unit[start - 1] == unit[source - 1]) {
                start -= 1;
                source -= 1;
            }
            const size = commonSize(unit, source, start, end);
            if (!writer.match(unit[from..start], start - source, size)) return null;
            at = start + size;
            from = at;
            misses = 1 << miss_shift;
            if (at <= last) table.places[hash(wordAt(unit, at - 2), table_bits)] = @intCast(at - 2);
        }
    }
    return if (writer.end(unit[from..])) writer.size else null;
}

const table_bits = 13;
const miss_shift = 6;

/// Where four bytes were seen last, by their hash.
pub const Table = struct { places: [1 << table_bits]u16 };

/// Packs into as few bytes as it finds: all matches within `depth` earlier places are weighed
/// against each other, from the end of the unit.
pub fn packSmall(search: *Search, to: []u8, unit: []const u8, depth: u16) ?usize {
    assert(unit.len <= unit_size_max);
    var writer: Writer = .{ .to = to };
    var from: usize = 0;
    if (unit.len > match_start_last) {
        search.find(unit, depth);
        search.weigh(unit.len);
        var at: usize = 0;
        while (at < unit.len) {
            const size = search.sizes[at];
            if (size < match_size_min) {
                at += 1;
                continue;
            }
            if (!writer.match(unit[from..at], search.offsets[at], size)) return null;
            at += size;
            from = at;
        }
    }
    return if (writer.end(unit[from..])) writer.size else null;
}

pub const Search = struct {
    heads: [1 << bits]u16,
    /// The distance to the earlier place with the same hash; 0: there is none.
    chain: [unit_size_max]u16,
    /// The longest match at each place, then the one that is used.
    sizes: [unit_size_max]u16,
    offsets: [unit_size_max]u16,
    /// Bytes from here to the end.
    costs: [unit_size_max + 1]u32,

    const bits = 15;
    /// A match of this size is taken as it is.
    const long_enough = 512;

    fn find(search: *Search, unit: []const u8, depth: u16) void {
        @memset(&search.heads, 0);
        @memset(search.sizes[0..unit.len], 0);
        const last = unit.len - match_start_last;
        const end = unit.len - literals_last_min;
        var skip_to: usize = 0;
        for (0..last + 1) |at| {
            const word = wordAt(unit, at);
            const head = &search.heads[hash(word, bits)];
            const newest: usize = head.*;
            // Places are kept plus one: 0 stands for none.
            search.chain[at] = @intCast(if (newest == 0) 0 else at + 1 - newest);
            head.* = @intCast(at + 1);
            if (at < skip_to) {
                search.sizes[at] = search.sizes[at - 1] - 1;
                search.offsets[at] = search.offsets[at - 1];
                continue;
            }
            search.findAt(unit, at, end, depth);
            if (search.sizes[at] >= long_enough)
                skip_to = at + search.sizes[at] - long_enough / 2;
        }
    }

    fn findAt(search: *Search, unit: []const u8, at: usize, end: usize, depth: u16) void {
        var earlier = at;
        var best: usize = match_size_min - 1;
        for (0..depth) |_| {
            const distance = search.chain[earlier];
            if (distance == 0) return;
            earlier -= distance;
            if (at + best < end and unit[earlier + best] != unit[at + best]) continue;
            const size = commonSize(unit, earlier, at, end);
            if (size <= best) continue;
            best = size;
            search.sizes[at] = @intCast(size);
            search.offsets[at] = @intCast(at - earlier);
            if (at + best >= end or best >= long_enough) return;
        }
    }

    /// Chooses for each place, from the end, what makes the rest shortest.
    fn weigh(search: *Search, size: usize) void {
        search.costs[size] = 0;
        var at = size;
        while (at > 0) {
            at -= 1;
            var best = search.costs[at + 1] + 1;
            var chosen: u16 = 0;
            const longest = search.sizes[at];
            if (longest >= match_size_min) {
                const first: u16 = if (longest >= long_enough) longest else match_size_min;
                for (first..@as(usize, longest) + 1) |taken| {
                    const extra: u32 = @intCast(lengthSize(taken - match_size_min));
                    const cost = search.costs[at + taken] + 3 + extra;
                    if (cost > best) continue;
                    best = cost;
                    chosen = @intCast(taken);
                }
            }
            search.sizes[at] = chosen;
            search.costs[at] = best;
        }
    }
};

/// Bytes of a length after its token.
fn lengthSize(size: usize) usize {
    return if (size < short_max) 0 else (size - short_max) / 255 + 1;
}

fn wordAt(unit: []const u8, at: usize) u32 {
    return std.mem.readInt(u32, unit[at..][0..4], .little);
}

fn hash(word: u32, comptime bits: u5) usize {
    // Knuth, The Art of Computer Programming, 6.4: the golden ratio.
    const shift: u5 = @intCast(32 - @as(u6, bits));
    return (word *% 2654435761) >> shift;
}

/// Counts equal bytes from two places, the later one before `end`.
fn commonSize(unit: []const u8, earlier: usize, later: usize, end: usize) usize {
    var size: usize = 0;
    while (later + size + 8 <= end) : (size += 8) {
        const differs = std.mem.readInt(u64, unit[earlier + size ..][0..8], .little) ^
            std.mem.readInt(u64, unit[later + size ..][0..8], .little);
        if (differs != 0) return size + @ctz(differs) / 8;
    }
    while (later + size < end and unit[earlier + size] == unit[later + size]) size += 1;
    return size;
}

const Writer = struct {
    to: []u8,
    size: usize = 0,

    fn match(writer: *Writer, literals: []const u8, offset: usize, size: usize) bool {
        assert(offset > 0 and size >= match_size_min);
        const rest = size - match_size_min;
        const needed = 3 + lengthSize(literals.len) + literals.len + lengthSize(rest);
        if (needed > writer.to.len - writer.size) return false;
        writer.begin(literals, @intCast(@min(rest, short_max)));
        std.mem.writeInt(u16, writer.to[writer.size..][0..2], @intCast(offset), .little);
        writer.size += 2;
        writer.length(rest);
        return true;
    }

    fn end(writer: *Writer, literals: []const u8) bool {
        const needed = 1 + lengthSize(literals.len) + literals.len;
        if (needed > writer.to.len - writer.size) return false;
        writer.begin(literals, 0);
        return true;
    }

    fn begin(writer: *Writer, literals: []const u8, match_short: u8) void {
        const short: u8 = @intCast(@min(literals.len, short_max));
        writer.byte(short << 4 | match_short);
        writer.length(literals.len);
        @memcpy(writer.to[writer.size..][0..literals.len], literals);
        writer.size += literals.len;
    }

    fn length(writer: *Writer, size: usize) void {
        if (size < short_max) return;
        var rest = size - short_max;
        while (rest >= 255) : (rest -= 255) writer.byte(255);
        writer.byte(@intCast(rest));
    }

    fn byte(writer: *Writer, value: u8) void {
        writer.to[writer.size] = value;
        writer.size += 1;
    }
};

const testing = std.testing;

fn expectRoundTrip(unit: []const u8) !void {
    const table = try testing.allocator.create(Table);
    defer testing.allocator.destroy(table);
    const search = try testing.allocator.create(Search);
    defer testing.allocator.destroy(search);
    const buffer = try testing.allocator.alloc(u8, sizeMax(unit.len));
    defer testing.allocator.free(buffer);
    const back = try testing.allocator.alloc(u8, unit.len);
    defer testing.allocator.free(back);
    const quick = pack(table, buffer, unit).?;
    try unpack(back, buffer[0..quick]);
    try testing.expectEqualSlices(u8, unit, back);
    const small = packSmall(search, buffer, unit, 64).?;
    // It weighs literals as one byte each, without the lengths of long runs.
    try testing.expect(small <= quick + unit.len / 255 + 1);
    try unpack(back, buffer[0..small]);
    try testing.expectEqualSlices(u8, unit, back);
    for ([_]usize{ 0, 1, unit.len / 3, unit.len -| 1, unit.len }) |wanted| {
        if (wanted > unit.len) continue;
        @memset(back, 0xaa);
        try unpackStart(back, buffer[0..small], wanted);
        try testing.expectEqualSlices(u8, unit[0..wanted], back[0..wanted]);
    }
    // It tells what does not fit, and writes nothing behind its buffer.
    const short = buffer[0..small -| 1];
    if (small > 1) try testing.expectEqual(null, packSmall(search, short, unit, 64));
    if (quick > 1) try testing.expectEqual(null, pack(table, buffer[0 .. quick - 1], unit));
}

test "what was packed is unpacked to the same bytes" {
    var prng: std.Random.DefaultPrng = .init(1);
    const random = prng.random();
    var unit: [unit_size_max]u8 = undefined;
    for (0..300) |round| {
        const size = if (round < 40) round else random.uintAtMost(usize, unit.len);
        const letters = @as(u8, 1) << random.uintAtMost(u3, 7);
        for (unit[0..size]) |*byte| byte.* = random.int(u8) % letters;
        // Matches at all distances, also overlapping ones.
        for (0..random.uintAtMost(usize, 20)) |_| if (size > 64) {
            const count = random.uintAtMost(usize, size / 3);
            const from = random.uintAtMost(usize, size - count);
            const to = random.uintAtMost(usize, size - count);
            for (0..count) |index| unit[to + index] = unit[from + index];
        };
        try expectRoundTrip(unit[0..size]);
    }
}

test "damaged and hostile input is refused, or unpacks to something of the right size" {
    const table = try testing.allocator.create(Table);
    defer testing.allocator.destroy(table);
    var prng: std.Random.DefaultPrng = .init(2);
    const random = prng.random();
    var unit: [3000]u8 = undefined;
    for (&unit) |*byte| byte.* = random.int(u8) % 3;
    var buffer: [sizeMax(unit.len)]u8 = undefined;
    const size = pack(table, &buffer, &unit).?;
    var back: [unit.len]u8 = undefined;
    for (0..size) |cut| try testing.expectError(error.Corrupt, unpack(&back, buffer[0..cut]));
    try testing.expectError(error.Corrupt, unpack(back[0 .. back.len - 1], buffer[0..size]));
    for (0..20_000) |_| {
        var damaged = buffer;
        for (0..1 + random.uintLessThan(usize, 4)) |_|
            damaged[random.uintLessThan(usize, size)] = random.int(u8);
        unpack(&back, damaged[0..size]) catch {};
        unpackStart(&back, damaged[0..size], random.uintAtMost(usize, back.len)) catch {};
    }
}

test "blocks of the reference program are unpacked" {
    // lz4 1.9.4 of Debian 12, `lz4 -1` and `lz4 -12`, both with `-B4 -BI`.
    const blocks = [_][]const u8{
        "f11d766461313a203030303020626c6f636b73206f6620343039362062797465732061726520636c6561" ++
            "6e2c20300d00446e6f740a35002f333735000e1d3135002f373435000e1c3235003f31313135000e1d33" ++
            "35002f343835000e1d3435002f383535000e1c3535003f32323235000e1d3635002f353935000e0d7301" ++
            "103299010fa8010c0d73013f33333335000e0d73012f333712020f0d73012f343012020f0673011f0001" ++
            "00ff1af0180102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425" ++
            "2627",
        "f11d766461313a203030303020626c6f636b73206f6620343039362062797465732061726520636c6561" ++
            "6e2c20300d00446e6f740a35002f333735000e1d3135002f373435000e1c3235003f31313135000e1d33" ++
            "35002f343835000e1d3435002f383535000e1c3535003f32323235000e1d3635002f353973011f3f3239" ++
            "3673011f3f33333373011f3f33373073011f3f3430377301181f000100ff1af018010203040506070809" ++
            "0a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627",
    };
    var text: [976]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&text);
    for (0..12) |index| try writer.print(
        "vda1: {d:0>4} blocks of 4096 bytes are clean, {d} are not\n",
        .{ index * 37, index % 7 },
    );
    try writer.splatByteAll(0, 300);
    for (0..40) |index| try writer.writeByte(@intCast(index));
    try testing.expectEqual(text.len, writer.end);
    for (blocks) |digits| {
        var buffer: [256]u8 = undefined;
        var unit: [text.len]u8 = undefined;
        try unpack(&unit, try std.fmt.hexToBytes(&buffer, digits));
        try testing.expectEqualStrings(&text, &unit);
    }
}
