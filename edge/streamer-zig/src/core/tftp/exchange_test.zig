//! The server's answers to what boot clients send, packet by packet: the exchanges of
//! `packages/proto/vectors/tftp-v1.json`.

const std = @import("std");
const testing = std.testing;
const base = @import("base");
const TftpServer = @import("server.zig");

const Step = struct {
    in: []const u8,
    out: ?[]const u8 = null,
    data: ?struct { first: u64, count: u16, bytes: u64 } = null,
};
const Exchange = struct {
    name: []const u8,
    file: []const u8,
    size: u64,
    steps: []const Step,
};
const Vectors = struct { exchanges: []const Exchange };

test "each exchange of a boot client goes as it is written down" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const vectors = try std.json.parseFromSliceLeaky(
        Vectors,
        arena.allocator(),
        @embedFile("tftp_vectors_json"),
        .{ .ignore_unknown_fields = true },
    );
    try testing.expect(vectors.exchanges.len > 10);
    for (vectors.exchanges) |*exchange| {
        errdefer std.debug.print("exchange: {s}\n", .{exchange.name});
        try play(exchange);
    }
}

fn play(exchange: *const Exchange) !void {
    const named = [_]TftpServer.Catalogue.Fixed.Named{.{ .name = exchange.file, .size = exchange.size }};
    const files: TftpServer.Catalogue.Fixed = .{ .files = &named };
    var server: TftpServer = try .init(testing.allocator, files.catalogue(), .{ .requests_max = 8 });
    defer server.deinit(testing.allocator);
    const peer: base.Endpoint = .{ .ip = .init(10, 0, 0, 7), .port = 2070 };
    var now_us: u64 = 1;
    for (exchange.steps) |*step| {
        errdefer std.debug.print("after {s}\n", .{step.in});
        now_us += 1000;
        var payload: [512]u8 = undefined;
        var reply: TftpServer.ReplyBuffer = undefined;
        const datagram = try std.fmt.hexToBytes(&payload, step.in);
        const answer = server.receive(now_us, peer, datagram, &reply);
        switch (answer.send) {
            .nothing => try testing.expect(step.out == null and step.data == null),
            .packet => |packet| {
                var want: [512]u8 = undefined;
                const bytes = try std.fmt.hexToBytes(&want, step.out orelse return error.UnexpectedPacket);
                try testing.expectEqualSlices(u8, bytes, packet.bytes);
            },
            .blocks => |blocks| {
                const want = step.data orelse return error.UnexpectedBlocks;
                try testing.expectEqual(want.first, blocks.first);
                try testing.expectEqual(want.count, blocks.count);
                const headers = @as(u64, 4) * blocks.count;
                try testing.expectEqual(want.bytes + headers, blocks.byteCount());
            },
        }
    }
}
