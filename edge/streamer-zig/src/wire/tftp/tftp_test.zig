//! Tests of tftp.zig, with the golden packets of `packages/proto/vectors/tftp-v1.json`.

const std = @import("std");
const testing = std.testing;
const tftp = @import("tftp.zig");

const Options = struct {
    blksize: ?u16 = null,
    tsize: ?u64 = null,
    timeoutS: ?u8 = null,
    windowsize: ?u16 = null,
};
const Request = struct { fileName: []const u8, mode: tftp.Mode, options: Options };
const Packet = struct {
    rrq: ?Request = null,
    wrq: ?Request = null,
    data: ?struct { block: u16, hex: []const u8 } = null,
    ack: ?u16 = null,
    oack: ?Options = null,
    @"error": ?struct { code: u16, text: []const u8 } = null,
};
const Vector = struct {
    name: []const u8,
    hex: []const u8,
    packet: ?Packet = null,
    @"error": ?[]const u8 = null,
};
const Vectors = struct { version: u32, about: []const u8, vectors: []const Vector };

test "each golden packet gives its values or its error, and survives being emitted again" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const text = @embedFile("tftp_vectors_json");
    const vectors = try std.json.parseFromSliceLeaky(Vectors, arena.allocator(), text, .{
        .ignore_unknown_fields = true,
    });
    try testing.expectEqual(1, vectors.version);
    for (vectors.vectors) |vector| {
        errdefer std.debug.print("vector: {s}\n", .{vector.name});
        const payload = try arena.allocator().alloc(u8, vector.hex.len / 2);
        _ = try std.fmt.hexToBytes(payload, vector.hex);
        const result = tftp.parse(payload);
        if (vector.@"error") |name| {
            if (result) |_| return error.TestUnexpectedResult else |refusal| {
                try testing.expectEqualStrings(name, @errorName(refusal));
            }
            continue;
        }
        const packet = try result;
        try expectPacket(vector.packet.?, &packet);
        try expectSurvives(&packet);
    }
}

fn expectPacket(want: Packet, got: *const tftp.Packet) !void {
    switch (got.*) {
        .rrq => |request| try expectRequest(want.rrq.?, &request),
        .wrq => |request| try expectRequest(want.wrq.?, &request),
        .data => |data| {
            var buffer: [512]u8 = undefined;
            try testing.expectEqual(want.data.?.block, data.block);
            const bytes = try std.fmt.hexToBytes(&buffer, want.data.?.hex);
            try testing.expectEqualSlices(u8, bytes, data.bytes);
        },
        .ack => |block| try testing.expectEqual(want.ack.?, block),
        .oack => |options| try expectOptions(want.oack.?, options),
        .err => |failure| {
            try testing.expectEqual(want.@"error".?.code, @backingInt(failure.code));
            try testing.expectEqualStrings(want.@"error".?.text, failure.text);
        },
    }
}

fn expectRequest(want: Request, got: *const tftp.Request) !void {
    try testing.expectEqualStrings(want.fileName, got.file_name);
    try testing.expectEqual(want.mode, got.mode);
    try expectOptions(want.options, got.options);
}

fn expectOptions(want: Options, got: tftp.Options) !void {
    const wanted: tftp.Options = .{
        .blksize = want.blksize,
        .tsize = want.tsize,
        .timeout_s = want.timeoutS,
        .windowsize = want.windowsize,
    };
    try testing.expectEqual(wanted, got);
}

fn expectSurvives(packet: *const tftp.Packet) !void {
    var buffer: [1024]u8 = undefined;
    const bytes = try tftp.emit(packet, &buffer);
    try testing.expectEqualDeep(packet.*, try tftp.parse(bytes));
}

test "a request longer than 512 bytes is not emitted" {
    const name: [504]u8 = @splat('n');
    var buffer: [1024]u8 = undefined;
    const longest: tftp.Packet = .{ .rrq = .{ .file_name = name[0..503] } };
    try testing.expectEqual(512, (try tftp.emit(&longest, &buffer)).len);
    const longer: tftp.Packet = .{ .rrq = .{ .file_name = &name } };
    try testing.expectError(error.NoSpace, tftp.emit(&longer, &buffer));
}

test "the largest options survive" {
    try expectSurvives(&.{ .oack = .{
        .blksize = tftp.blksize_max,
        .tsize = std.math.maxInt(u64),
        .timeout_s = 255,
        .windowsize = 65535,
    } });
}

fn fuzzOne(_: void, smith: *testing.Smith) !void {
    var payload: [600]u8 = undefined;
    const size = smith.slice(&payload);
    const packet = tftp.parse(payload[0..size]) catch return;
    try expectSurvives(&packet);
}

test "fuzz: any payload is refused or survives" {
    try testing.fuzz({}, fuzzOne, .{});
}
