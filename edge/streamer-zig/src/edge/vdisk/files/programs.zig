//! What a boot read, by program and by unit of the init system: the READs of the edge joined with
//! the device's own account of who asked for which sectors. The account is untrusted: it chooses
//! names and shares, and nothing else.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Allocator = std.mem.Allocator;
const guest_trace = core.boot.guest_trace;
const read_list = core.boot.read_list;
const assert = std.debug.assert;

/// Programs and units in a report.
pub const programs_max = 24;
pub const units_max = 16;
/// The boot profile had these read, and no program asked for them.
const ahead_name = "(read ahead only)";
const name_size_max = guest_trace.unit_size_max;

pub const Programs = @This();

state: guest_trace.State,
/// Events that the device's kernel dropped, and requests that did not fit.
lost: u32,
/// Bytes of a program with a name, and of those with a unit.
named_bytes: u64 = 0,
unit_bytes: u64 = 0,
/// With the trace's own numbers; the last one is what was read ahead only.
all: []Reads,
/// By name.
units: std.array_hash_map.String(Reads) = .empty,
/// Indices of `all`, those first whose absence would help most.
shown: []const u32 = &.{},
shown_units: []const u32 = &.{},

pub const Reads = struct {
    name: []const u8,
    unit: []const u8 = "",
    reads: u64 = 0,
    bytes: u64 = 0,
    cold_reads: u64 = 0,
    cold_bytes: u64 = 0,
    ahead_bytes: u64 = 0,
    storage_us: u64 = 0,
    first_us: u64 = std.math.maxInt(u64),
    /// The time in which READs of this program alone waited for a disk of the edge, and the system
    /// for them: what the boot would gain if the edge had their bytes in memory.
    gain_us: u64 = 0,
};

/// Null: the device has not told, or no device would tell this.
pub fn make(arena: Allocator, list: *const read_list.List) Allocator.Error!?Programs {
    if (list.trace.len == 0) return null;
    const trace = guest_trace.Trace.parse(list.trace) catch return null;
    var programs: Programs = .{
        .state = trace.state,
        .lost = trace.lost,
        .all = try arena.alloc(Reads, @as(usize, trace.program_count) + 1),
    };
    var names = trace.programs();
    for (programs.all[0..trace.program_count]) |*program| {
        const given = names.next().?;
        program.* = .{
            .name = try printable(arena, given.name),
            .unit = try printable(arena, given.unit),
        };
    }
    programs.all[trace.program_count] = .{ .name = ahead_name };
    const spans = try spansOf(arena, &trace);
    var waits: std.ArrayList(Wait) = .empty;
    for (0..list.count()) |index| {
        const read = list.get(index);
        if (read.length() > 0) try programs.take(arena, spans, read, &waits);
    }
    try programs.findGains(arena, waits.items);
    try programs.sumUnits(arena);
    programs.shown = try order(arena, programs.all, programs_max);
    programs.shown_units = try order(arena, programs.units.values(), units_max);
    return programs;
}

fn printable(arena: Allocator, text: []const u8) Allocator.Error![]const u8 {
    const copy = try arena.dupe(u8, text[0..@min(text.len, name_size_max)]);
    for (copy) |*byte| if (!std.ascii.isPrint(byte.*) or byte.* == '"' or byte.* == '\\') {
        byte.* = '?';
    };
    return copy;
}

/// Sectors that a program asked for; spans are in order and do not overlap.
const Span = struct { first: u64, end: u64, program: u16 };

/// Of what was asked for twice, the run that begins first has it.
fn spansOf(arena: Allocator, trace: *const guest_trace.Trace) Allocator.Error![]const Span {
    var spans: std.ArrayList(Span) = .empty;
    var runs = trace.runs();
    while (runs.next()) |run| try spans.append(arena, .{
        .first = run.sector,
        .end = run.sector + run.count,
        .program = run.program,
    });
    const ByFirst = struct {
        fn isBefore(_: void, a: Span, b: Span) bool {
            return a.first < b.first;
        }
    };
    base.sort(Span, spans.items, {}, ByFirst.isBefore);
    var count: usize = 0;
    var end: u64 = 0;
    for (spans.items) |span| {
        const first = @max(span.first, end);
        if (first >= span.end) continue;
        spans.items[count] = .{ .first = first, .end = span.end, .program = span.program };
        count += 1;
        end = span.end;
    }
    return spans.items[0..count];
}

/// A READ that waited for a disk of the edge, and a program for it.
const Wait = struct { from_us: u64, until_us: u64, program: u16 };

fn take(
    programs: *Programs,
    arena: Allocator,
    spans: []const Span,
    read: read_list.Record,
    waits: *std.ArrayList(Wait),
) Allocator.Error!void {
    const Context = struct {
        fn isBehind(sector: u64, span: Span) std.math.Order {
            return if (span.end <= sector) .gt else .lt;
        }
    };
    const end = @as(u64, read.sector) + read.sectors;
    var at = std.sort.lowerBound(Span, spans, @as(u64, read.sector), Context.isBehind);
    var left: u64 = read.sectors;
    var most: ?Span = null;
    while (at < spans.len and spans[at].first < end) : (at += 1) {
        const span = spans[at];
        const count = @min(span.end, end) - @max(span.first, read.sector);
        left -= count;
        programs.credit(span.program, read, count);
        if (most == null or count > most.?.end - most.?.first)
            most = .{ .first = 0, .end = count, .program = span.program };
    }
    // Nobody asked for the rest: the device's own reading ahead, or unknown.
    if (read.is_ahead and left > 0) programs.credit(@intCast(programs.all.len - 1), read, left);
    if (!read.is_cold or read.is_ahead or read.storage_us == 0) return;
    if (most) |span| try waits.append(arena, .{
        .from_us = read.at_us,
        .until_us = @as(u64, read.at_us) + read.storage_us,
        .program = span.program,
    });
}

fn credit(programs: *Programs, number: u16, read: read_list.Record, sectors: u64) void {
    assert(sectors > 0 and sectors <= read.sectors);
    const program = &programs.all[number];
    const bytes = sectors * read_list.Record.sector_size;
    program.reads += 1;
    program.bytes += bytes;
    program.storage_us += @as(u64, read.storage_us) * sectors / read.sectors;
    program.first_us = @min(program.first_us, read.at_us);
    if (read.is_cold) {
        program.cold_reads += 1;
        program.cold_bytes += bytes;
    }
    if (read.is_ahead) program.ahead_bytes += bytes;
    if (program.name.len > 0) programs.named_bytes += bytes;
    if (program.unit.len > 0 or number == programs.all.len - 1) programs.unit_bytes += bytes;
}

/// Sums the time in which one program alone waited.
fn findGains(programs: *Programs, arena: Allocator, waits: []const Wait) Allocator.Error!void {
    const Edge = struct {
        at_us: u64,
        program: u16,
        begins: bool,

        fn isBefore(_: void, a: @This(), b: @This()) bool {
            return a.at_us < b.at_us;
        }
    };
    const edges = try arena.alloc(Edge, 2 * waits.len);
    for (waits, 0..) |wait, index| {
        edges[2 * index] = .{ .at_us = wait.from_us, .program = wait.program, .begins = true };
        edges[2 * index + 1] =
            .{ .at_us = wait.until_us, .program = wait.program, .begins = false };
    }
    std.sort.heap(Edge, edges, {}, Edge.isBefore);
    const active = try arena.alloc(u32, programs.all.len);
    @memset(active, 0);
    var active_programs: std.array_hash_map.Auto(u16, void) = .empty;
    try active_programs.ensureTotalCapacity(arena, programs.all.len);
    var previous_us: u64 = 0;
    for (edges) |edge| {
        if (active_programs.count() == 1)
            programs.all[active_programs.keys()[0]].gain_us += edge.at_us - previous_us;
        previous_us = edge.at_us;
        if (edge.begins) active[edge.program] += 1 else active[edge.program] -= 1;
        if (active[edge.program] > 0)
            active_programs.putAssumeCapacity(edge.program, {})
        else
            _ = active_programs.swapRemove(edge.program);
    }
}

fn sumUnits(programs: *Programs, arena: Allocator) Allocator.Error!void {
    for (programs.all) |*program| {
        if (program.reads == 0 or program.unit.len == 0) continue;
        const entry = try programs.units.getOrPut(arena, program.unit);
        if (!entry.found_existing) entry.value_ptr.* = .{ .name = program.unit };
        const unit = entry.value_ptr;
        inline for (.{
            "reads", "bytes", "cold_reads", "cold_bytes", "ahead_bytes", "storage_us", "gain_us",
        }) |field| @field(unit, field) += @field(program, field);
        unit.first_us = @min(unit.first_us, program.first_us);
    }
}

/// The first ones by what their absence would gain, then by bytes.
fn order(arena: Allocator, all: []const Reads, max: usize) Allocator.Error![]const u32 {
    const Context = struct {
        fn isBefore(reads: []const Reads, a: u32, b: u32) bool {
            if (reads[a].gain_us != reads[b].gain_us) return reads[a].gain_us > reads[b].gain_us;
            return if (reads[a].bytes == reads[b].bytes) a < b else reads[a].bytes > reads[b].bytes;
        }
    };
    const indices = try arena.alloc(u32, all.len);
    var used: usize = 0;
    for (all, 0..) |*reads, index| if (reads.reads > 0) {
        indices[used] = @intCast(index);
        used += 1;
    };
    std.sort.heap(u32, indices[0..used], all, Context.isBefore);
    return indices[0..@min(used, max)];
}

pub fn writeJson(programs: *const Programs, json: *std.json.Stringify) std.Io.Writer.Error!void {
    try json.objectField("trace");
    try json.write(.{
        .state = @tagName(programs.state),
        .lost = programs.lost,
        .namedBytes = programs.named_bytes,
        .unitBytes = programs.unit_bytes,
    });
    try json.objectField("programs");
    try json.beginArray();
    for (programs.shown) |index| {
        try json.beginObject();
        try json.objectField("unit");
        try json.write(programs.all[index].unit);
        try writeReads(json, &programs.all[index]);
    }
    try json.endArray();
    try json.objectField("units");
    try json.beginArray();
    for (programs.shown_units) |index| {
        try json.beginObject();
        try writeReads(json, &programs.units.values()[index]);
    }
    try json.endArray();
}

fn writeReads(json: *std.json.Stringify, reads: *const Reads) std.Io.Writer.Error!void {
    inline for (.{
        .{ "name", reads.name },
        .{ "reads", reads.reads },
        .{ "bytes", reads.bytes },
        .{ "coldReads", reads.cold_reads },
        .{ "coldBytes", reads.cold_bytes },
        .{ "aheadBytes", reads.ahead_bytes },
        .{ "storageUs", reads.storage_us },
        .{ "firstUs", reads.first_us },
        .{ "gainUs", reads.gain_us },
    }) |field| {
        try json.objectField(field[0]);
        try json.write(field[1]);
    }
    try json.endObject();
}

const testing = std.testing;

fn testRead(at_us: u64, sector: u64, sectors: u32, storage_us: u64) read_list.Read {
    return .{
        .at_us = at_us,
        .offset = sector * 512,
        .length = sectors * 512,
        .storage_us = storage_us,
        .is_cold = storage_us > 100,
        .is_ahead = false,
    };
}

fn testList(
    arena: Allocator,
    reads: []const read_list.Read,
    trace: []const u8,
) !read_list.List {
    var bytes: std.ArrayList(u8) = .empty;
    try bytes.appendSlice(arena, &read_list.encodeHead(&.{
        .boot_id = .zero,
        .version_id = .fromRandom(@splat(2)),
        .started_unix_ms = 0,
        .dropped = 0,
        .trace_size = @intCast(trace.len),
    }));
    for (reads) |*read| try bytes.appendSlice(arena, &read.record().toBytes());
    try bytes.appendSlice(arena, trace);
    return read_list.parse(bytes.items);
}

test "READs belong to who asked for their sectors, and only time alone is a gain" {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    const collector = try arena.create(guest_trace.Collector);
    collector.* = .{};
    const one = collector.programOf(.{ .name = "plymouthd", .unit = "plymouth-start.service" });
    const two = collector.programOf(.{ .name = "cat\"", .unit = "" });
    collector.add(one, 100, 8);
    collector.add(two, 108, 8);
    collector.add(one, 104, 8);
    const text = try arena.create([guest_trace.size_max]u8);
    var ahead = testRead(50, 112, 16, 400);
    ahead.is_ahead = true;
    const list = try testList(arena, &.{
        testRead(0, 100, 12, 1200),
        testRead(1000, 108, 4, 1000),
        testRead(5000, 104, 4, 500),
        testRead(9000, 5000, 8, 3),
        ahead,
    }, collector.write(.complete, true, text));
    const programs = (try Programs.make(arena, &list)).?;
    try testing.expectEqual(.complete, programs.state);
    // Its run began first.
    const first = &programs.all[programs.shown[0]];
    try testing.expectEqualStrings("plymouthd", first.name);
    // 100 to 112; the second program asked for 112 to 116 alone.
    try testing.expectEqual((12 + 4 + 4) * 512, first.bytes);
    try testing.expectEqual(0, first.ahead_bytes);
    try testing.expectEqual(2500, first.gain_us);
    const second = &programs.all[programs.shown[2]];
    try testing.expectEqualStrings("cat?", second.name);
    try testing.expectEqual(4 * 512, second.ahead_bytes);
    try testing.expectEqual(0, second.gain_us);
    const only = &programs.all[programs.shown[1]];
    try testing.expectEqualStrings(ahead_name, only.name);
    try testing.expectEqual(12 * 512, only.bytes);
    // Without a program: the READ of 5000.
    try testing.expectEqual((20 + 4 + 12) * 512, programs.named_bytes);
    try testing.expectEqual((20 + 12) * 512, programs.unit_bytes);
    try testing.expectEqual(1, programs.shown_units.len);
}

test "two programs that wait at once gain nothing alone" {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    const collector = try arena.create(guest_trace.Collector);
    collector.* = .{};
    collector.add(collector.programOf(.{ .name = "a", .unit = "" }), 0, 8);
    collector.add(collector.programOf(.{ .name = "b", .unit = "" }), 100, 8);
    const text = try arena.create([guest_trace.size_max]u8);
    const list = try testList(arena, &.{
        testRead(0, 0, 8, 1000),
        testRead(400, 100, 8, 1000),
    }, collector.write(.complete, false, text));
    const programs = (try Programs.make(arena, &list)).?;
    try testing.expectEqual(400, programs.all[0].gain_us);
    try testing.expectEqual(400, programs.all[1].gain_us);
    var damaged = list;
    damaged.trace = list.trace[0 .. list.trace.len - 1];
    try testing.expectEqual(null, try Programs.make(arena, &damaged));
    damaged.trace = "";
    try testing.expectEqual(null, try Programs.make(arena, &damaged));
}
