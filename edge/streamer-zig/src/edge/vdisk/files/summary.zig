//! What a boot read, by file (packages/proto/UPLINK.md, "What a boot read"): the files that took
//! the most time and the most bytes, the slowest READs, a coarse map of the disk, and what the
//! device says of its programs and units. Bounded whatever the device read and says, and whatever
//! the image names its files.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const image = @import("image");
const Programs = @import("programs.zig");
const Allocator = std.mem.Allocator;
const FileMap = image.FileMap;
const guest_units = core.boot.guest_units;
const read_list = core.boot.read_list;
const assert = std.debug.assert;

/// Files by time, and as many by bytes.
const files_max = 40;
const slowest_max = 32;
const cells_max = 256;
const slowest_units_max = 24;
const chain_max = 20;
/// Longest name; of a longer path, the end is kept.
pub const name_size_max = 200;
/// What a boot costs the uplink and the control plane: its last report, and this.
const reports_size_max = 64 << 10;
/// Of the whole as JSON.
pub const size_max = reports_size_max - core.boot.report.size_max;

pub const Summary = @This();

map: *const FileMap,
list: *const read_list.List,
total: Totals,
/// By name.
files: std.array_hash_map.Auto(u32, FileReads) = .empty,
/// Indices of `files`: those by time, then further ones by bytes.
shown: []const u32,
/// READs, the slowest first.
slowest: base.BoundedArray(u32, slowest_max),
cell_size: u64,
cells: [cells_max]Cell,
/// Null: the device has not told.
programs: ?Programs = null,
units: ?guest_units.Units = null,

pub const Totals = struct {
    reads: u64 = 0,
    bytes: u64 = 0,
    cold_reads: u64 = 0,
    cold_bytes: u64 = 0,
    ahead_reads: u64 = 0,
    ahead_bytes: u64 = 0,
    storage_us: u64 = 0,
    /// Bytes of something with a name.
    named_bytes: u64 = 0,
};

pub const FileReads = struct {
    reads: u64 = 0,
    bytes: u64 = 0,
    cold_reads: u64 = 0,
    /// A READ over several files counts for each by its bytes.
    storage_us: u64 = 0,
    first_us: u64 = std.math.maxInt(u64),
};

const Cell = struct { bytes: u64 = 0, first_us: u64 = std.math.maxInt(u64) };

/// `map` and `list` must outlive the summary.
pub fn make(arena: Allocator, map: *const FileMap, list: *const read_list.List) !Summary {
    var summary: Summary = .{
        .map = map,
        .list = list,
        .total = .{},
        .shown = &.{},
        .slowest = .empty,
        .cell_size = (map.disk_size + cells_max - 1) / cells_max,
        .cells = @splat(.{}),
    };
    for (0..list.count()) |index| try summary.take(arena, @intCast(index));
    try summary.choose(arena);
    summary.programs = try .make(arena, list);
    summary.units = guest_units.Units.parse(list.units) catch null;
    return summary;
}

fn take(summary: *Summary, arena: Allocator, index: u32) Allocator.Error!void {
    const read = summary.list.get(index);
    const total = &summary.total;
    total.reads += 1;
    total.bytes += read.length();
    total.storage_us += read.storage_us;
    if (read.is_cold) {
        total.cold_reads += 1;
        total.cold_bytes += read.length();
    }
    if (read.is_ahead) {
        total.ahead_reads += 1;
        total.ahead_bytes += read.length();
    }
    summary.rank(index);
    var parts = summary.map.partsOf(read.offset(), read.length());
    while (parts.next()) |part| {
        if (summary.map.names[part.name].kind.isNamed()) total.named_bytes += part.size;
        const entry = try summary.files.getOrPut(arena, part.name);
        if (!entry.found_existing) entry.value_ptr.* = .{};
        const file = entry.value_ptr;
        file.reads += 1;
        file.bytes += part.size;
        file.cold_reads += @intFromBool(read.is_cold);
        file.storage_us += @as(u64, read.storage_us) * part.size / read.length();
        file.first_us = @min(file.first_us, read.at_us);
        summary.paint(part, read.at_us);
    }
}

fn paint(summary: *Summary, part: FileMap.Part, at_us: u64) void {
    var at = part.first;
    const end = part.first + part.size;
    while (at < end) {
        const index = at / summary.cell_size;
        const until = @min(end, (index + 1) * summary.cell_size);
        const cell = &summary.cells[@intCast(index)];
        cell.bytes += until - at;
        cell.first_us = @min(cell.first_us, at_us);
        at = until;
    }
}

/// Keeps the slowest READs in order; of equally slow ones, the first.
fn rank(summary: *Summary, index: u32) void {
    const slowest = &summary.slowest;
    const us = summary.list.get(index).storage_us;
    if (us == 0) return;
    if (slowest.isFull()) {
        if (summary.list.get(slowest.slice()[slowest_max - 1]).storage_us >= us) return;
        _ = slowest.pop();
    }
    slowest.appendAssumeCapacity(index);
    const items = slowest.slice();
    var at = items.len - 1;
    while (at > 0 and summary.list.get(items[at - 1]).storage_us < us) : (at -= 1)
        std.mem.swap(u32, &items[at - 1], &items[at]);
}

fn choose(summary: *Summary, arena: Allocator) Allocator.Error!void {
    const order = try arena.alloc(u32, summary.files.count());
    for (order, 0..) |*index, number| index.* = @intCast(number);
    const reads = summary.files.values();
    const ByTime = struct {
        fn isBefore(all: []const FileReads, a: u32, b: u32) bool {
            if (all[a].storage_us != all[b].storage_us)
                return all[a].storage_us > all[b].storage_us;
            return if (all[a].bytes == all[b].bytes) a < b else all[a].bytes > all[b].bytes;
        }
    };
    const ByBytes = struct {
        fn isBefore(all: []const FileReads, a: u32, b: u32) bool {
            return if (all[a].bytes == all[b].bytes) a < b else all[a].bytes > all[b].bytes;
        }
    };
    std.sort.heap(u32, order, @as([]const FileReads, reads), ByTime.isBefore);
    var shown: std.ArrayList(u32) = .empty;
    try shown.appendSlice(arena, order[0..@min(files_max, order.len)]);
    std.sort.heap(u32, order, @as([]const FileReads, reads), ByBytes.isBefore);
    for (order[0..@min(files_max, order.len)]) |index| {
        if (std.mem.findScalar(u32, shown.items, index) == null) try shown.append(arena, index);
    }
    summary.shown = shown.items;
}

/// Returns the name of a file as it is shown: printable, and without what ends a string of JSON.
pub fn nameOf(summary: *const Summary, name: u32, buffer: *[name_size_max]u8) []const u8 {
    const text = summary.map.path(name, buffer);
    const written = buffer[buffer.len - text.len ..];
    for (written) |*byte| if (byte.* == '"' or byte.* == '\\') {
        byte.* = '?';
    };
    return written;
}

/// Writes the report of UPLINK.md into `buffer` and returns it. Where names are so long that not
/// all fit, the last files are left out; their bytes still count in the sums.
pub fn encode(summary: *const Summary, buffer: *[size_max]u8) []const u8 {
    var fitting = summary.*;
    while (true) {
        var writer: std.Io.Writer = .fixed(buffer);
        if (fitting.writeJson(&writer)) |_| return writer.buffered() else |_| {}
        // Everything else is bounded far below.
        assert(fitting.shown.len > 0);
        fitting.shown.len -= 1;
    }
}

/// Writes the whole, however large it is.
pub fn writeJson(summary: *const Summary, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    const total = &summary.total;
    var json: std.json.Stringify = .{ .writer = writer };
    try json.beginObject();
    try writeField(&json, "versionId", summary.list.head.version_id);
    inline for (.{
        .{ "reads", total.reads },
        .{ "bytes", total.bytes },
        .{ "coldReads", total.cold_reads },
        .{ "coldBytes", total.cold_bytes },
        .{ "aheadReads", total.ahead_reads },
        .{ "aheadBytes", total.ahead_bytes },
        .{ "storageUs", total.storage_us },
        .{ "namedBytes", total.named_bytes },
        .{ "droppedReads", summary.list.head.dropped },
        .{ "fileCount", summary.files.count() },
        .{ "diskBytes", summary.map.disk_size },
        .{ "cellBytes", summary.cell_size },
    }) |field| try writeField(&json, field[0], field[1]);
    try json.objectField("cells");
    try json.beginArray();
    for (&summary.cells, 0..) |*cell, index|
        if (cell.bytes > 0) try json.write(.{ index, cell.bytes, cell.first_us });
    try json.endArray();
    try json.objectField("files");
    try json.beginArray();
    for (summary.shown) |index| try summary.writeFile(&json, index);
    try json.endArray();
    try json.objectField("slowest");
    try json.beginArray();
    for (summary.slowest.constSlice()) |index| try summary.writeRead(&json, index);
    try json.endArray();
    if (summary.programs) |*programs| try programs.writeJson(&json);
    if (summary.units) |*units| {
        try writeUnits(&json, "slowestUnits", units.slowest.constSlice()[0..@min(
            units.slowest.count,
            slowest_units_max,
        )]);
        try writeUnits(&json, "unitChain", units.chain.constSlice()[0..@min(
            units.chain.count,
            chain_max,
        )]);
    }
    try json.endObject();
}

fn writeUnits(json: *std.json.Stringify, name: []const u8, units: []const guest_units.Unit) !void {
    try json.objectField(name);
    try json.beginArray();
    for (units) |*unit| {
        var shown: [guest_units.name_size_max]u8 = undefined;
        for (shown[0..unit.name.len], unit.name) |*to, byte|
            to.* = if (std.ascii.isPrint(byte) and byte != '"' and byte != '\\') byte else '?';
        try json.write(.{
            .name = shown[0..unit.name.len],
            .startUs = unit.start_us,
            .durationUs = unit.duration_us,
        });
    }
    try json.endArray();
}

fn writeField(json: *std.json.Stringify, name: []const u8, value: anytype) !void {
    try json.objectField(name);
    try json.write(value);
}

fn writeFile(summary: *const Summary, json: *std.json.Stringify, index: u32) !void {
    var buffer: [name_size_max]u8 = undefined;
    const name = summary.files.keys()[index];
    const file = &summary.files.values()[index];
    try json.write(.{
        .name = summary.nameOf(name, &buffer),
        .kind = @tagName(summary.map.names[name].kind),
        .reads = file.reads,
        .bytes = file.bytes,
        .coldReads = file.cold_reads,
        .storageUs = file.storage_us,
        .firstUs = file.first_us,
    });
}

fn writeRead(summary: *const Summary, json: *std.json.Stringify, index: u32) !void {
    const read = summary.list.get(index);
    var buffer: [name_size_max]u8 = undefined;
    var parts = summary.map.partsOf(read.offset(), read.length());
    try json.write(.{
        .atUs = read.at_us,
        .offset = read.offset(),
        .bytes = read.length(),
        .storageUs = read.storage_us,
        .isCold = read.is_cold,
        .isAhead = read.is_ahead,
        .name = if (parts.next()) |part| summary.nameOf(part.name, &buffer) else "",
    });
}

const testing = std.testing;
const vector_json = @embedFile("files_read_vectors_json");

fn listOf(arena: Allocator, reads: []const read_list.Read) !read_list.List {
    var bytes: std.ArrayList(u8) = .empty;
    try bytes.appendSlice(arena, &read_list.encodeHead(&.{
        .boot_id = .zero,
        .version_id = .fromRandom(@splat(2)),
        .started_unix_ms = 0,
        .dropped = 3,
    }));
    for (reads) |*read| try bytes.appendSlice(arena, &read.record().toBytes());
    return read_list.parse(bytes.items);
}

test "bytes, time and slowness are counted for the files that hold them" {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    const map: FileMap = .{
        .disk_size = 256 * 4096,
        .extents = &.{
            .{ .first = 0, .size = 4096, .name = 0 },
            .{ .first = 4096, .size = 8192, .name = 2 },
            .{ .first = 12288, .size = 253 * 4096, .name = 3 },
        },
        .names = &.{
            .{ .parent = 0, .at = 0, .size = 5, .kind = .area },
            .{ .parent = 1, .at = 0, .size = 0, .kind = .directory },
            .{ .parent = 1, .at = 5, .size = 4, .kind = .file },
            .{ .parent = 3, .at = 9, .size = 4, .kind = .free },
        },
        .texts = "tablea\"\\bfree",
    };
    const read: read_list.Read = .{
        .at_us = 50,
        .offset = 0,
        .length = 8192,
        .storage_us = 1000,
        .is_cold = true,
        .is_ahead = false,
    };
    var ahead = read;
    ahead.at_us = 90;
    ahead.offset = 8192;
    ahead.is_cold = false;
    ahead.is_ahead = true;
    ahead.storage_us = 4;
    const list = try listOf(arena, &.{ read, ahead });
    const summary: Summary = try .make(arena, &map, &list);
    try testing.expectEqual(Totals{
        .reads = 2,
        .bytes = 16384,
        .cold_reads = 1,
        .cold_bytes = 8192,
        .ahead_reads = 1,
        .ahead_bytes = 8192,
        .storage_us = 1004,
        .named_bytes = 12288,
    }, summary.total);
    const text = summary.encode(try arena.create([size_max]u8));
    const Vector = struct { note: []const u8, report: std.json.Value };
    const vector = try std.json.parseFromSliceLeaky(Vector, arena, vector_json, .{});
    const wanted = try std.json.Stringify.valueAlloc(arena, vector.report, .{});
    try testing.expectEqualStrings(wanted, text);
}

/// Programs with the longest names, each of which asked for much.
fn tellOfAll(arena: Allocator, sectors_count: u64) ![]const u8 {
    const guest_trace = core.boot.guest_trace;
    const collector = try arena.create(guest_trace.Collector);
    collector.* = .{};
    for (0..guest_trace.programs_max) |number| {
        var name: [guest_trace.program_size_max]u8 = @splat('n');
        _ = std.mem.print(&name, "{d}", .{number}) catch unreachable;
        var unit: [guest_trace.unit_size_max]u8 = @splat('u');
        _ = std.mem.print(&unit, "{d}", .{number}) catch unreachable;
        const first = number * (sectors_count << 21) / guest_trace.programs_max;
        collector.add(collector.programOf(.{ .name = &name, .unit = &unit }), first, 1 << 20);
    }
    return collector.write(.complete, true, try arena.create([guest_trace.size_max]u8));
}

test "a summary is never larger than it may be" {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    const count = 2000;
    const size = 1 << 30;
    var extents: [count]FileMap.Extent = undefined;
    var names: [count]FileMap.Name = undefined;
    const text: [1000]u8 = @splat('"');
    var reads: [2 * count]read_list.Read = undefined;
    for (0..count) |index| {
        extents[index] =
            .{ .first = @intCast(index * size), .size = size, .name = @intCast(index) };
        names[index] =
            .{ .parent = @intCast(index), .at = 0, .size = text.len, .kind = .unmapped };
        for (0..2) |half| reads[half * count + index] = .{
            .at_us = std.math.maxInt(u40),
            .offset = index * size,
            .length = std.math.maxInt(u16) * 512,
            .storage_us = if (half == 0) index else std.math.maxInt(u28) - index,
            .is_cold = true,
            .is_ahead = true,
        };
    }
    const map: FileMap =
        .{ .disk_size = count * size, .extents = &extents, .names = &names, .texts = &text };
    try testing.expect(map.isWhole());
    var list = try listOf(arena, &reads);
    list.trace = try tellOfAll(arena, count);
    const unit: guest_units.Unit =
        .{ .name = &@as([64]u8, @splat('"')), .start_us = 1 << 60, .duration_us = 1 << 60 };
    const units: [guest_units.slowest_max]guest_units.Unit = @splat(unit);
    list.units = guest_units.write(&units, &units, try arena.create([guest_units.size_max]u8));
    const summary: Summary = try .make(arena, &map, &list);
    try testing.expectEqual(24, summary.programs.?.shown.len);
    const report = summary.encode(try arena.create([size_max]u8));
    // With the boot's own report, it is all that the control plane keeps of a boot.
    try testing.expect(report.len + core.boot.report.size_max <= 64 * 1024);
    // The names do not fit, and most of the files do.
    const Written = struct { files: []const std.json.Value, slowest: []const std.json.Value };
    const written = try std.json.parseFromSliceLeaky(Written, arena, report, .{
        .ignore_unknown_fields = true,
    });
    try testing.expect(written.files.len > files_max / 2 and written.files.len < 2 * files_max);
    try testing.expectEqual(slowest_max, written.slowest.len);
    try testing.expectEqual(0, summary.total.named_bytes);
    for (summary.slowest.constSlice()[1..], summary.slowest.constSlice()[0..31]) |later, first|
        try testing.expect(list.get(first).storage_us > list.get(later).storage_us);
}
