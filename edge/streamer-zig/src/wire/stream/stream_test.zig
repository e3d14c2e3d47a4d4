//! Tests of stream.zig with the golden packets of packages/proto/vectors/stream-v2.json and
//! stream-v3.json, which the TypeScript tests read too. In them bytes and 64-bit numbers are hex,
//! enums are names, and refused packets name their reason.

const std = @import("std");
const stream = @import("stream.zig");
const testing = std.testing;

const Vector = struct {
    name: []const u8,
    hex: []const u8,
    packet: ?std.json.Value = null,
    refused: ?[]const u8 = null,
    /// Its packet does not say what the parser skipped, so that it is not emitted again.
    one_way: bool = false,
};

const vector_texts = [_][]const u8{
    @embedFile("stream_vectors_v2_json"),
    @embedFile("stream_vectors_v3_json"),
};

fn reasonOf(err: stream.ParseError) []const u8 {
    return switch (err) {
        error.WrongSize => "wrong_size",
        error.WrongVersion => "wrong_version",
        error.ReservedNotZero => "reserved_not_zero",
        error.BadValue => "bad_value",
    };
}

fn expectField(comptime T: type, expected: std.json.Value, actual: T) !void {
    var hex_buffer: [2 * stream.packet_size_max]u8 = undefined;
    switch (@typeInfo(T)) {
        .int => if (T == u64) {
            const text = try std.mem.print(&hex_buffer, "{x:0>16}", .{actual});
            try testing.expectEqualStrings(expected.string, text);
        } else try testing.expectEqual(expected.integer, actual),
        .bool => try testing.expectEqual(expected.bool, actual),
        .@"enum" => try testing.expectEqualStrings(expected.string, @tagName(actual)),
        .array => {
            const text = try std.mem.print(&hex_buffer, "{x}", .{&actual});
            try testing.expectEqualStrings(expected.string, text);
        },
        .pointer => {
            const text = try std.mem.print(&hex_buffer, "{x}", .{actual});
            try testing.expectEqualStrings(expected.string, text);
        },
        .@"struct" => if (T == stream.Ciphers)
            try expectCiphers(expected, actual)
        else if (T == stream.Steps)
            try expectSteps(expected, actual)
        else if (T == stream.ReadTimes)
            try expectReadTimes(expected, actual)
        else if (T == stream.profile.Units) {
            try testing.expectEqual(expected.array.items.len, actual.count());
            for (expected.array.items, 0..) |pair, index| {
                const unit = actual.at(@intCast(index));
                try testing.expectEqual(pair.array.items[0].integer, unit.index);
                try testing.expectEqual(pair.array.items[1].integer, unit.blocks);
            }
        } else if (T == stream.FetchTimes.Reads) {
            try testing.expectEqual(expected.array.items.len, actual.count());
            for (expected.array.items, 0..) |pair, index| {
                const read = actual.at(@intCast(index));
                try testing.expectEqual(pair.array.items[0].integer, read.request_id);
                try testing.expectEqual(pair.array.items[1].integer, read.fetch_us);
            }
        } else if (T == stream.NetworkCard) {
            inline for (comptime std.meta.fieldNames(T)) |name|
                try expectField(
                    @FieldType(T, name),
                    expected.object.get(name).?,
                    @field(actual, name),
                );
        } else {
            comptime std.debug.assert(T == stream.Ranges);
            try testing.expectEqual(expected.array.items.len, actual.count());
            for (expected.array.items, 0..) |pair, index| {
                const range = actual.at(@intCast(index));
                try testing.expectEqual(pair.array.items[0].integer, range.first_fragment);
                try testing.expectEqual(pair.array.items[1].integer, range.fragment_count);
            }
        },
        else => comptime unreachable,
    }
}

fn expectCiphers(expected: std.json.Value, actual: stream.Ciphers) !void {
    var named: stream.Ciphers = .{};
    for (expected.array.items) |item| {
        const cipher = std.meta.stringToEnum(stream.Cipher, item.string).?;
        named = @bitCast(@as(u8, @bitCast(named)) | @as(u8, 1) << @intCast(@backingInt(cipher)));
    }
    try testing.expectEqual(named, actual);
}

fn expectSteps(expected: std.json.Value, actual: stream.Steps) !void {
    try testing.expectEqual(expected.array.items.len, actual.count);
    var steps = actual.iterate();
    for (expected.array.items) |item| {
        const step = steps.next().?;
        try testing.expectEqualStrings(item.object.get("name").?.string, step.name);
        try testing.expectEqualStrings(item.object.get("group").?.string, @tagName(step.group));
        try expectField(u64, item.object.get("start_us").?, @bitCast(step.start_us));
        try expectField(u64, item.object.get("duration_us").?, step.duration_us);
    }
    try testing.expectEqual(null, steps.next());
}

/// The value of a field that a vector omits, since most packets have none of it.
fn absent(comptime T: type) std.json.Value {
    if (@typeInfo(T) == .int) return .{ .integer = 0 };
    if (T == bool) return .{ .bool = false };
    if (T == stream.DeviceKey or T == stream.DeviceSignature) {
        const zeros: [2 * @sizeOf(T)]u8 = comptime @splat('0');
        return .{ .string = &zeros };
    }
    if (T == stream.ReadTimes)
        return .{ .array = .{
            .items = &.{},
            .capacity = 0,
            .allocator = testing.allocator,
            .pointer_stability = .{},
        } };
    unreachable; // The vector lacks a field.
}

fn expectReadTimes(expected: std.json.Value, actual: stream.ReadTimes) !void {
    try testing.expectEqual(expected.array.items.len, actual.count);
    var times = actual.iterate();
    for (expected.array.items) |item| {
        const entry = times.next().?;
        const used = entry.histogram.used().?;
        const phase = item.object.get("phase") orelse std.json.Value{ .string = "whole" };
        try testing.expectEqualStrings(phase.string, @tagName(entry.phase));
        try testing.expectEqualStrings(item.object.get("kind").?.string, @tagName(entry.kind));
        try testing.expectEqual(item.object.get("first_bucket").?.integer, used.first);
        try testing.expectEqual(item.object.get("max_us").?.integer, entry.histogram.max_us);
        try expectField(u64, item.object.get("sum_us").?, entry.histogram.sum_us);
        const counts = item.object.get("counts").?.array.items;
        try testing.expectEqual(counts.len, used.counts.len);
        for (counts, used.counts) |count, noted| try testing.expectEqual(count.integer, noted);
    }
    try testing.expectEqual(null, times.next());
}

/// Compares an optional field.
fn expectOptional(expected: ?std.json.Value, actual: anytype) !void {
    try testing.expectEqual(expected != null, actual != null);
    const part = actual orelse return;
    inline for (comptime std.meta.fieldNames(@TypeOf(part))) |name| {
        const value = expected.?.object.get(name).?;
        if (comptime std.mem.eql(u8, name, "edges")) {
            try testing.expectEqual(value.array.items.len, part.edges.count);
            for (value.array.items, part.edges.constSlice()) |item, edge| {
                var buffer: [@TypeOf(edge).text_size_max]u8 = undefined;
                try testing.expectEqualStrings(
                    item.string,
                    try std.mem.print(&buffer, "{f}", .{edge}),
                );
            }
        } else try expectField(@FieldType(@TypeOf(part), name), value, @field(part, name));
    }
}

/// Bytes that are text in the vectors, and not hex.
fn textOf(comptime Fields: type, comptime name: []const u8, value: anytype) ?[]const u8 {
    const is_of_machine = comptime std.mem.eql(u8, name, "driver") or
        std.mem.eql(u8, name, "model");
    if (Fields == stream.Machine and is_of_machine) return std.mem.trimEnd(u8, value, "\x00");
    if (Fields != stream.Ready) return null;
    if (comptime std.mem.eql(u8, name, "code")) return std.mem.trimEnd(u8, value, "\x00");
    return if (comptime std.mem.eql(u8, name, "sentence")) value.* else null;
}

fn expectPacket(expected: std.json.ObjectMap, packet: stream.Packet) !void {
    try testing.expectEqualStrings(expected.get("type").?.string, @tagName(packet.body));
    const version = expected.get("version") orelse std.json.Value{ .integer = 2 };
    try testing.expectEqual(version.integer, @backingInt(packet.version));
    if (expected.get("session_id")) |id| try expectField(u64, id, packet.session_id);
    if (expected.get("request_id")) |id| try expectField(u32, id, packet.request_id);
    switch (packet.body) {
        inline else => |body| {
            const Fields = @TypeOf(body);
            if (Fields == void) return;
            if (Fields == u16) return expectField(u16, expected.get("size").?, body);
            const info = @typeInfo(Fields).@"struct";
            inline for (info.field_names, info.field_types) |name, T| {
                if (T == stream.Version) {
                    try testing.expectEqual(packet.version, @field(body, name));
                    continue;
                }
                if (T == ?stream.RefuseCode) {
                    try testing.expectEqual(expected.get(name) != null, body.refusal != null);
                    if (body.refusal) |code|
                        try testing.expectEqualStrings(expected.get(name).?.string, @tagName(code));
                    continue;
                }
                if (comptime std.mem.eql(u8, name, "shown") or std.mem.eql(u8, name, "failover")) {
                    try expectOptional(expected.get(name), @field(body, name));
                    continue;
                }
                const value: std.json.Value = expected.get(name) orelse absent(T);
                if (textOf(Fields, name, &@field(body, name))) |text|
                    try testing.expectEqualStrings(value.string, text)
                else
                    try expectField(T, value, @field(body, name));
            }
        },
    }
}

fn checkVector(vector: Vector) !void {
    var bytes_buffer: [stream.packet_size_max + stream.tag_size]u8 = undefined;
    const bytes = try std.fmt.hexToBytes(&bytes_buffer, vector.hex);
    if (vector.refused) |reason| {
        if (stream.parse(bytes)) |_| return error.AcceptedHostilePacket else |err| {
            try testing.expectEqualStrings(reason, reasonOf(err));
        }
        return;
    }
    const packet = try stream.parse(bytes);
    try expectPacket(vector.packet.?.object, packet);
    if (vector.one_way) return;
    var out: [stream.packet_size_max]u8 = @splat(0xee);
    try testing.expectEqualSlices(u8, bytes, stream.emit(packet, &out));
    // The readable part of a sealed packet: its payload lies between header and tag.
    @memset(bytes_buffer[bytes.len..][0..stream.tag_size], 0xee);
    const sealed = bytes_buffer[0 .. bytes.len + stream.tag_size];
    const fragment = stream.fragmentOf(packet.version, sealed);
    const is_plain = packet.body == .data and packet.body.data.packed_size == 0;
    try testing.expectEqual(is_plain, fragment != null);
    const other: stream.Version = if (packet.version == .v2) .v3 else .v2;
    try testing.expectEqual(null, stream.fragmentOf(other, sealed));
    if (is_plain) {
        try testing.expectEqual(packet.request_id, fragment.?.request_id);
        try testing.expectEqual(packet.body.data.index, fragment.?.index);
        for (0..stream.header_size + stream.tag_size) |size|
            try testing.expectEqual(null, stream.fragmentOf(packet.version, sealed[0..size]));
        const header = stream.dataHeader(
            packet.version,
            packet.session_id,
            packet.request_id,
            packet.body.data.index,
        );
        try testing.expectEqualSlices(u8, bytes[0..stream.header_size], &header);
    }
}

test "every golden packet is parsed as recorded and emitted byte for byte" {
    for (vector_texts) |text| {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        defer arena.deinit();
        const vectors = try std.json.parseFromSliceLeaky([]Vector, arena.allocator(), text, .{});
        try testing.expect(vectors.len >= 180);
        for (vectors) |vector| checkVector(vector) catch |err| {
            std.debug.print("vector: {s}\n", .{vector.name});
            return err;
        };
    }
}

test "a truncated packet is refused" {
    for (vector_texts) |text| {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        defer arena.deinit();
        const vectors = try std.json.parseFromSliceLeaky([]Vector, arena.allocator(), text, .{});
        for (vectors) |vector| {
            if (vector.refused != null) continue;
            const bytes = try arena.allocator().alloc(u8, vector.hex.len / 2);
            _ = try std.fmt.hexToBytes(bytes, vector.hex);
            try checkTruncated(bytes);
        }
    }
}

fn checkTruncated(bytes: []const u8) !void {
    for (0..@min(bytes.len, 300)) |size| {
        const packet = stream.parse(bytes[0..size]) catch continue;
        // Only fragments, READY's sentence, the list of missing fragments and parts of an account
        // have no length of their own.
        const kind = std.meta.activeTag(packet.body);
        const is_open = switch (kind) {
            .data, .write, .write_ack => true,
            .ready => size >= stream.ready_size_min,
            // Padding may follow, or is the whole rest.
            .welcome => size >= stream.welcome_size,
            .probe_ack => true,
            .used => size % stream.profile.entry_size == 0,
            .fetch_times => size % 8 == 0,
            .account => size >= stream.account_size_min,
            else => false,
        };
        try testing.expect(is_open);
    }
}
