//! A simulated link between both sides of the stream, for tests: it loses, duplicates, delays and
//! reorders packets, and drops large ones.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const packed_answers = @import("packed.zig");
const packed_test = @import("packed_test.zig");
const StreamServer = @import("server/server.zig");
const testing = std.testing;
const assert = std.debug.assert;

pub const QueuedPacket =
    struct { at_us: u64, serial: u64, to_device: bool, size: u16, bytes: [wire.packet_size_max]u8 };

pub const Link = struct {
    prng: base.Prng,
    loss_percent: u8 = 0,
    duplicate_percent: u8 = 0,
    /// Upper bound of the extra delay, which reorders packets.
    jitter_us: u64 = 0,
    delay_us: u64 = 100,
    /// Largest UDP payload that passes.
    packet_size_max: u16 = wire.packet_size_max,
    flights: std.ArrayList(QueuedPacket) = .empty,
    serial: u64 = 0,
    /// The packet with this number, counted from 0 in each direction, is lost.
    lose_to_device: []const u64 = &.{},
    sent_to_device: u64 = 0,
    /// By chance, in each direction.
    lost_to_device: u64 = 0,
    lost_to_edge: u64 = 0,

    pub fn deinit(link: *Link) void {
        link.flights.deinit(testing.allocator);
    }

    pub fn send(link: *Link, now_us: u64, to_device: bool, packet: []const u8) !void {
        if (to_device) {
            defer link.sent_to_device += 1;
            for (link.lose_to_device) |number| if (number == link.sent_to_device) return;
        }
        if (packet.len > link.packet_size_max) return;
        if (link.prng.chance(link.loss_percent, 100)) {
            if (to_device) link.lost_to_device += 1 else link.lost_to_edge += 1;
            return;
        }
        const copies: u8 = if (link.prng.chance(link.duplicate_percent, 100)) 2 else 1;
        for (0..copies) |_| {
            assert(packet.len <= link.packet_size_max);
            link.serial += 1;
            var flight: QueuedPacket = .{
                .at_us = now_us + link.delay_us + link.prng.below(link.jitter_us + 1),
                .serial = link.serial,
                .to_device = to_device,
                .size = @intCast(packet.len),
                .bytes = undefined,
            };
            @memcpy(flight.bytes[0..packet.len], packet);
            try link.flights.append(testing.allocator, flight);
        }
    }

    pub fn takeFirst(link: *Link) ?QueuedPacket {
        if (link.flights.items.len == 0) return null;
        var first: usize = 0;
        for (link.flights.items, 0..) |*flight, index| {
            const best = &link.flights.items[first];
            if (flight.at_us < best.at_us or
                (flight.at_us == best.at_us and flight.serial < best.serial)) first = index;
        }
        assert(first < link.flights.items.len);
        return link.flights.swapRemove(first);
    }

    /// Sends all packets of the answer to a READ; `disk.fill(offset, buffer)` gives the bytes.
    pub fn answerRead(
        link: *Link,
        now_us: u64,
        server: *StreamServer,
        read: *const StreamServer.ReadRequest,
        disk: anytype,
    ) !void {
        var sealer = server.sealer(read.session_id).?;
        var fragments = read.fragments();
        while (fragments.next()) |fragment| {
            var payload: [wire.fragment_size_max]u8 = undefined;
            disk.fill(fragment.offset, payload[0..fragment.length]);
            var packet: [wire.packet_size_max]u8 = undefined;
            try link.send(
                now_us,
                true,
                sealer.seal(&fragment.header, payload[0..fragment.length], &packet),
            );
        }
    }

    /// Like `answerRead`, packed; plain if packing does not save a packet. `spoil` breaks what is
    /// packed.
    pub fn answerPacked(
        link: *Link,
        now_us: u64,
        server: *StreamServer,
        request: *const StreamServer.ReadRequest,
        disk: anytype,
        spoil: bool,
    ) !void {
        const bytes = try testing.allocator.alloc(u8, request.length);
        defer testing.allocator.free(bytes);
        disk.fill(request.offset, bytes);
        var content: std.ArrayList(u8) = .empty;
        defer content.deinit(testing.allocator);
        try packed_test.packRange(bytes, @intCast(request.offset), &content);
        // No piece is that long.
        if (spoil) content.items[0] = 0xff;
        const size: u32 = @intCast(content.items.len);
        const whole = packed_answers.AnswerWriter.sizeOf(size, request.fragment_size);
        const plain_count = wire.fragmentCount(request.length, request.fragment_size);
        var read = request.*;
        if (whole > (plain_count - 1) * @as(u32, read.fragment_size) or !read.answerBy(whole))
            return link.answerRead(now_us, server, request, disk);
        const answer = try testing.allocator.alloc(u8, whole);
        defer testing.allocator.free(answer);
        var writer: packed_answers.AnswerWriter =
            .{ .to = answer, .fragment_size = read.fragment_size, .packed_size = size };
        writer.write(content.items);
        var sealer = server.sealer(read.session_id).?;
        var fragments = read.fragments();
        var sent: u32 = 0;
        while (fragments.next()) |fragment| {
            const payload = answer[fragment.at..][0..fragment.length];
            var packet: [wire.packet_size_max]u8 = undefined;
            try link.send(now_us, true, sealer.seal(&fragment.header, payload, &packet));
            sent += fragment.length;
        }
        assert(sent == read.bytes_out);
    }

    /// Sends the answer to a HELLO, after the packet that proves a large size.
    pub fn answerHello(
        link: *Link,
        now_us: u64,
        server: *StreamServer,
        admission: *const StreamServer.Admission,
    ) !void {
        var large: StreamServer.LargeBuffer = undefined;
        if (server.showSize(admission, &large)) |packet| try link.send(now_us, true, packet);
        if (admission.reply) |packet| try link.send(now_us, true, packet);
    }

    pub fn answerProbe(
        link: *Link,
        now_us: u64,
        server: *StreamServer,
        probe: StreamServer.ProbeRequest,
    ) !void {
        var large: StreamServer.LargeBuffer = undefined;
        try link.send(now_us, true, server.answerProbe(probe, &large).?);
    }
};
