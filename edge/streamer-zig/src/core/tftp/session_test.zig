//! Tests of session.zig: whole TFTP transfers between this project's server and client over a
//! network that loses, duplicates and reorders.

const std = @import("std");
const testing = std.testing;
const base = @import("base");
const tftp = @import("wire").tftp;
const TftpServer = @import("server.zig");
const TftpClient = @import("client.zig");
const Endpoint = base.Endpoint;

const server_address: Endpoint = .{ .ip = .init(10, 0, 0, 1), .port = 69 };
const client_address: Endpoint = .{ .ip = .init(10, 0, 0, 7), .port = 2070 };
const packets_max = 2_000_000;

/// The file's content at an offset.
fn byteAt(offset: u64) u8 {
    return @truncate((offset *% 0x9e3779b97f4a7c15) >> 56);
}

const Datagram = struct {
    due_us: u64,
    to_server: bool,
    size: u32,
    bytes: [tftp.data_header_size + 1468]u8,
};

const Case = struct {
    size: u64,
    blksize: ?u16 = 1432,
    windowsize: ?u16 = null,
    asks_size: bool = true,
    seed: u64 = 0,
    /// Percent.
    loss: u32 = 0,
    duplicates: u32 = 0,
    /// Datagrams that are closer together than this may overtake each other.
    jitter_us: u64 = 0,
};

const Network = struct {
    prng: base.Prng,
    case: Case,
    now_us: u64 = 0,
    flying: std.ArrayList(Datagram) = .empty,
    server: TftpServer,
    client: TftpClient,
    bytes_to_client: u64 = 0,
    finished: ?TftpServer.Event = null,
    outcome: ?TftpClient.Outcome = null,
    client_buffer: TftpClient.Buffer = undefined,
    reply_buffer: TftpServer.ReplyBuffer = undefined,

    fn put(network: *Network, to_server: bool, parts: [2][]const u8) !void {
        if (network.prng.chance(network.case.loss, 100)) return;
        const copies: u32 = if (network.prng.chance(network.case.duplicates, 100)) 2 else 1;
        for (0..copies) |_| {
            var datagram: Datagram = .{
                .due_us = network.now_us + 100 + network.prng.between(0, network.case.jitter_us),
                .to_server = to_server,
                .size = @intCast(parts[0].len + parts[1].len),
                .bytes = undefined,
            };
            @memcpy(datagram.bytes[0..parts[0].len], parts[0]);
            @memcpy(datagram.bytes[parts[0].len..][0..parts[1].len], parts[1]);
            try network.flying.append(testing.allocator, datagram);
        }
    }

    fn actServer(network: *Network, step: TftpServer.Step) !void {
        for (step.events.constSlice()) |event| switch (event) {
            // A duplicated request may be answered after its transfer is over.
            .requested, .started, .unanswered => {},
            .finished => network.finished = event,
            .failed, .refused, .size_queried => return error.TestUnexpectedResult,
        };
        switch (step.send) {
            .nothing => {},
            .packet => |packet| try network.put(false, .{ packet.bytes, "" }),
            .blocks => |blocks| {
                try testing.expectEqual(client_address, blocks.to);
                var iterator = blocks.iterate();
                while (iterator.next()) |block| {
                    var content: [1468]u8 = undefined;
                    for (content[0..block.size], 0..) |*byte, index|
                        byte.* = byteAt(block.offset + index);
                    try network.put(false, .{ &block.header, content[0..block.size] });
                }
            },
        }
    }

    fn actClient(network: *Network, step: TftpClient.Step) !void {
        if (step.content) |content| {
            try testing.expectEqual(network.bytes_to_client, content.offset);
            for (content.bytes, 0..) |byte, index|
                try testing.expectEqual(byteAt(content.offset + index), byte);
            network.bytes_to_client += content.bytes.len;
        }
        if (step.outcome) |outcome| {
            try testing.expectEqual(null, network.outcome);
            network.outcome = outcome;
        }
        if (step.send) |packet| try network.put(true, .{ packet.bytes, "" });
    }

    fn takeNext(network: *Network) ?Datagram {
        if (network.flying.items.len == 0) return null;
        var next: usize = 0;
        for (network.flying.items, 0..) |datagram, index| {
            if (datagram.due_us < network.flying.items[next].due_us) next = index;
        }
        return network.flying.orderedRemove(next);
    }

    /// Runs until both sides are done.
    fn run(network: *Network) !void {
        try network.actClient(network.client.start(network.now_us, &network.client_buffer));
        for (0..packets_max) |_| {
            if (network.outcome != null and network.finished != null) return;
            const timer_us = @min(
                network.client.deadline_us,
                network.server.nextDeadline() orelse std.math.maxInt(u64),
            );
            if (network.flying.items.len == 0) {
                try testing.expect(timer_us < std.math.maxInt(u64));
                network.now_us = @max(network.now_us, timer_us);
            } else {
                const datagram = network.takeNext().?;
                network.now_us = @max(network.now_us, datagram.due_us);
                try network.deliver(&datagram);
            }
            while (network.server.tick(network.now_us)) |step| try network.actServer(step);
            if (network.client.deadline_us <= network.now_us)
                try network.actClient(network.client.tick(network.now_us, &network.client_buffer));
        }
        return error.TestUnexpectedResult;
    }

    fn deliver(network: *Network, datagram: *const Datagram) !void {
        const bytes = datagram.bytes[0..datagram.size];
        const now_us = network.now_us;
        if (datagram.to_server) {
            const buffer = &network.reply_buffer;
            try network.actServer(network.server.receive(now_us, client_address, bytes, buffer));
        } else {
            const buffer = &network.client_buffer;
            try network.actClient(network.client.receive(now_us, server_address, bytes, buffer));
        }
    }
};

/// Runs one download and checks each byte. Returns the packets that the server retransmitted.
fn transfer(case: Case) !u64 {
    errdefer std.debug.print("case: {any}\n", .{case});
    const named = [_]TftpServer.Catalogue.Fixed.Entry{.{ .name = "program", .size = case.size }};
    const files: TftpServer.Catalogue.Fixed = .{ .files = &named };
    var network: Network = .{
        .prng = .init(case.seed),
        .case = case,
        .server = try .init(testing.allocator, files.catalogue(), .{}),
        .client = .init(.{
            .server = server_address,
            .file_name = "b/00000000000000ff/program",
            .blksize = case.blksize,
            .windowsize = case.windowsize,
            .asks_size = case.asks_size,
            // A loss of 30 % both ways fails ten times in a row once in a thousand.
            .retries_max = 60,
        }),
    };
    defer network.server.deinit(testing.allocator);
    defer network.flying.deinit(testing.allocator);
    try network.run();
    try testing.expectEqual(case.size, network.bytes_to_client);
    try testing.expectEqual(TftpClient.Outcome{ .done = case.size }, network.outcome.?);
    try testing.expectEqual(case.size, network.finished.?.finished.bytes);
    if (case.asks_size) try testing.expectEqual(case.size, network.client.file_size.?);
    return network.finished.?.finished.retries;
}

test "files of every size around a block arrive whole, each block sent once" {
    for ([_]u64{ 0, 1, 511, 512, 513, 1024, 1431, 1432, 1433, 2864, 100_000 }) |size| {
        for ([_]?u16{ null, 512, 1432 }) |blksize| {
            for ([_]?u16{ null, 1, 4, 64 }) |windowsize| {
                const case: Case = .{ .size = size, .blksize = blksize, .windowsize = windowsize };
                try testing.expectEqual(0, try transfer(case));
            }
        }
    }
}

test "a request without any option is served" {
    _ = try transfer(.{ .size = 5000, .blksize = null, .asks_size = false });
}

test "block numbers wrap to 0 after 65535" {
    _ = try transfer(.{ .size = 8 * 65536 * 2 + 3, .blksize = 8, .windowsize = 64 });
    _ = try transfer(.{ .size = 8 * 65536, .blksize = 8 });
}

test "every byte arrives whatever the network loses, duplicates and reorders" {
    for (0..30) |seed| {
        const windows = [_]?u16{ null, 2, 4, 16, 64 };
        _ = try transfer(.{
            .size = 20_000 + seed * 37,
            .windowsize = windows[seed % windows.len],
            .seed = seed,
            .loss = @intCast(seed % 16),
            .duplicates = @intCast(seed % 10),
            .jitter_us = if (seed % 3 == 0) 200 else 0,
        });
    }
}
