//! Tests of transfer.zig with the golden bytes of packages/proto/vectors/peer-transfer-v1.json. In
//! them bytes are hex.

const std = @import("std");
const base = @import("base");
const transfer = @import("transfer.zig");
const testing = std.testing;

const Vectors = struct {
    siteKey: []const u8,
    transferKey: []const u8,
    asking: base.Uuid,
    answering: base.Uuid,
    difference: base.Uuid,
    helloNonce: []const u8,
    welcomeNonce: []const u8,
    hello: []const u8,
    welcome: []const u8,
    askingKey: []const u8,
    answeringKey: []const u8,
    records: []const struct {
        by: enum { asking, answering },
        name: []const u8,
        text: []const u8,
        hex: []const u8,
    },
};

fn bytesOf(comptime size: usize, hex: []const u8) ![size]u8 {
    var bytes: [size]u8 = undefined;
    try testing.expectEqual(2 * size, hex.len);
    _ = try std.fmt.hexToBytes(&bytes, hex);
    return bytes;
}

fn load(arena: std.mem.Allocator) !Vectors {
    return std.json.parseFromSliceLeaky(
        Vectors,
        arena,
        @embedFile("peer_transfer_vectors_json"),
        .{ .ignore_unknown_fields = true },
    );
}

test "greetings, keys and records are those of the golden bytes" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const vectors = try load(arena.allocator());
    const key = transfer.deriveKey(try bytesOf(32, vectors.siteKey));
    try testing.expectEqual(try bytesOf(32, vectors.transferKey), key);
    const hello = try bytesOf(transfer.greeting_size, vectors.hello);
    const welcome = try bytesOf(transfer.greeting_size, vectors.welcome);
    try testing.expectEqual(hello, transfer.emitGreeting(&.{
        .kind = .hello,
        .from = vectors.asking,
        .to = vectors.answering,
        .nonce = try bytesOf(32, vectors.helloNonce),
    }, &key, null));
    try testing.expectEqual(welcome, transfer.emitGreeting(&.{
        .kind = .welcome,
        .from = vectors.answering,
        .to = vectors.asking,
        .nonce = try bytesOf(32, vectors.welcomeNonce),
    }, &key, &hello));
    const greeting = try transfer.parseGreeting(&welcome);
    try testing.expect(greeting.from.eql(vectors.answering) and greeting.to.eql(vectors.asking));
    try testing.expect(transfer.isAuthentic(&welcome, &key, &hello));
    // A WELCOME to another HELLO.
    try testing.expect(!transfer.isAuthentic(&welcome, &key, &welcome));
    var sealing: transfer.Session = .init(&key, &hello, &welcome);
    try testing.expectEqual(try bytesOf(32, vectors.askingKey), sealing.asking.key);
    try testing.expectEqual(try bytesOf(32, vectors.answeringKey), sealing.answering.key);
    var opening = sealing;
    for (vectors.records) |*record| {
        const by = if (record.by == .asking) &sealing.asking else &sealing.answering;
        const at = if (record.by == .asking) &opening.asking else &opening.answering;
        var text_buffer: [64]u8 = undefined;
        const text = try std.fmt.hexToBytes(&text_buffer, record.text);
        var buffer: [transfer.record_size_max]u8 = undefined;
        const sealed = by.seal(text, &buffer);
        var hex: [256]u8 = undefined;
        try testing.expectEqualStrings(record.hex, try std.mem.print(&hex, "{x}", .{sealed}));
        try testing.expectEqualSlices(u8, text, try at.open(sealed[transfer.head_size..]));
        switch (record.by) {
            .asking => {
                var bytes: transfer.RequestBytes = undefined;
                const request = try transfer.parseRequest(text);
                try testing.expectEqualSlices(u8, text, transfer.emitRequest(request, &bytes));
            },
            .answering => switch (try transfer.parseAnswer(text)) {
                .content => |size| try testing.expectEqualSlices(
                    u8,
                    text,
                    &transfer.emitContent(size),
                ),
                .absence => |why| try testing.expectEqualSlices(
                    u8,
                    text,
                    &transfer.emitAbsence(why),
                ),
                .part => |part| try testing.expectEqualStrings("hello", part),
            },
        }
    }
}

test "what an edge offers of a copy is decoded from its bytes" {
    const summary: transfer.CopySummary = .{
        .layer = .fromBytes(@splat(7)),
        .layer_id = .fromBytes(@splat(8)),
        .moment_unix_ms = 0x0102030405060708,
        .entries = 0x0a0b0c0d,
        .sha256 = @splat(9),
    };
    const bytes = summary.emit();
    try testing.expectEqualStrings("\x01\x02\x03\x04\x05\x06\x07\x08", bytes[32..40]);
    try testing.expectEqualStrings("\x0a\x0b\x0c\x0d", bytes[40..44]);
    try testing.expectEqual(summary, transfer.CopySummary.parse(&bytes));
}

test "a record opens once, at its place, and only whole" {
    var sealing: transfer.Direction = .{ .key = @splat(1) };
    var buffer: [transfer.record_size_max]u8 = undefined;
    const record = sealing.seal("abc", &buffer)[transfer.head_size..];
    var opening: transfer.Direction = .{ .key = @splat(1), .counter = 1 };
    var copy: [3 + 16]u8 = undefined;
    @memcpy(&copy, record);
    try testing.expectError(error.Forged, opening.open(&copy));
    opening.counter = 0;
    @memcpy(&copy, record);
    try testing.expectError(error.Forged, opening.open(copy[0 .. copy.len - 1]));
    @memcpy(&copy, record);
    try testing.expectEqualStrings("abc", try opening.open(&copy));
    @memcpy(&copy, record);
    try testing.expectError(error.Forged, opening.open(&copy));
    try testing.expectError(error.Forged, opening.open(copy[0..16]));
}

test "bytes that are no message of ours are refused" {
    for ([_][]const u8{
        "",
        "\x81",
        "\x81\x00\x00\x00\x01\x00",
        "\x82\x04",
        "\x83",
        "\x84\x00",
    }) |text|
        if (transfer.parseAnswer(text)) |_| return error.Accepted else |_| {};
    var request_bytes: transfer.RequestBytes = undefined;
    const request = transfer.emitRequest(.{ .list = .zero }, &request_bytes);
    request[20] = 1;
    try testing.expectError(error.BadValue, transfer.parseRequest(request));
    request[0] = 7;
    try testing.expectError(error.BadValue, transfer.parseRequest(request));
    // What is asked by an id alone has no number.
    for ([_]u8{ 4, 5 }) |kind| {
        request[0] = kind;
        try testing.expectError(error.BadValue, transfer.parseRequest(request));
    }
    request[0] = 3;
    try testing.expectError(error.BadValue, transfer.parseRequest(request));
    // A block has no level, and there is no fifth kind of content.
    const block = transfer.emitRequest(
        .{ .content = .{ .version = .zero, .what = .block, .index = 1 } },
        &request_bytes,
    );
    block[18] = 1;
    try testing.expectError(error.BadValue, transfer.parseRequest(block));
    block[18] = 0;
    block[17] = 5;
    try testing.expectError(error.BadValue, transfer.parseRequest(block));
    try testing.expectError(error.BadValue, transfer.parseRequest(request[1..]));
    var bytes: transfer.GreetingBytes = @splat(0);
    try testing.expectError(error.NotTransfer, transfer.parseGreeting(&bytes));
    bytes[0..8].* = "BFPT\x02\x01\x00\x00".*;
    try testing.expectError(error.WrongVersion, transfer.parseGreeting(&bytes));
    bytes[0..8].* = "BFPT\x01\x03\x00\x00".*;
    try testing.expectError(error.BadValue, transfer.parseGreeting(&bytes));
    bytes[0..8].* = "BFPT\x01\x01\x00\x01".*;
    try testing.expectError(error.BadValue, transfer.parseGreeting(&bytes));
}
