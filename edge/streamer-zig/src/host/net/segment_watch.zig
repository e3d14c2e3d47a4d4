//! Relates what is heard on the segment to the boots of this edge: offers of other DHCP servers,
//! and the server that a device turned to. Frames of a boot that has not begun yet wait a moment,
//! because the listener may be quicker than the socket that begins it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const Epoll = @import("epoll.zig");
const sys = @import("../sys.zig");
const BootCaptures = @import("../boots/captures.zig");
const Boots = @import("../edge_io.zig").Agent.Boots;
const packet_filter = @import("packet_filter.zig");
const SegmentListener = @import("segment_listener.zig");

const Frame = SegmentListener.Frame;

pub const SegmentWatch = @This();

boots: *Boots,
/// This edge's own: its offers are recorded where they are sent.
own: core.dhcp.network.Addresses,
listeners: []SegmentListener,
/// Null: no packets are captured.
captures: ?*BootCaptures = null,
/// Frames that may still be handled in this second.
budget: u32 = frames_per_second_max,
is_listening: bool = true,
hears_outgoing: bool = true,
pending: [pending_max]Pending = @splat(.{}),
next_pending: u8 = 0,
scratch: wire.dhcp.Scratch = undefined,
ignored: base.IgnoredCounters = .{},

/// A flood costs the packet loop no more than this.
const frames_per_second_max = 4096;
const pending_max = 16;
/// How long a frame waits for its boot.
const pending_us_max = 2 * std.time.us_per_s;

const Pending = struct {
    /// 0: free.
    size: u16 = 0,
    wire_size: u32 = 0,
    unix_ns: u64 = 0,
    is_outgoing: bool = false,
    at_us: u64 = 0,
    bytes: [packet_filter.snap_size_whole]u8 = undefined,
};

pub fn addTo(watch: *SegmentWatch, epoll: Epoll, token: u64) sys.Error!void {
    for (watch.listeners) |*listener| try epoll.add(listener.fd, .read, token);
}

/// Handles what waits, at most one batch per interface. Call it after the sockets that begin
/// boots.
pub fn receive(watch: *SegmentWatch, epoll: Epoll, token: u64, now_us: u64) void {
    watch.retry(now_us);
    for (watch.listeners) |*listener| {
        if (watch.budget == 0) break;
        const count = listener.receive();
        watch.budget -|= @intCast(count);
        for (0..count) |index| {
            const frame = listener.frameAt(index) orelse continue;
            if (watch.take(now_us, &frame) == .waits) watch.keep(now_us, &frame);
        }
    }
    if (watch.budget == 0 and watch.is_listening) watch.listen(epoll, token, false);
}

/// Runs once a second.
pub fn tick(watch: *SegmentWatch, epoll: Epoll, token: u64, now_us: u64) void {
    watch.retry(now_us);
    if (watch.captures) |captures| captures.tick(watch.boots);
    watch.hearOutgoing(watch.wantsOutgoing());
    for (watch.listeners) |*listener| {
        const drops = listener.countDrops();
        if (drops > 0) watch.ignored.addMany(.segment_busy, drops);
    }
    watch.budget = frames_per_second_max;
    if (!watch.is_listening) watch.listen(epoll, token, true);
}

/// A boot begins: what its device is sent belongs to its capture from the first answer on.
pub fn noteBegin(watch: *SegmentWatch) void {
    if (watch.keepsPackets()) watch.hearOutgoing(true);
}

/// Only captures need outgoing frames, and they end where the stream begins.
fn wantsOutgoing(watch: *SegmentWatch) bool {
    if (!watch.keepsPackets()) return false;
    var iterator = watch.boots.table.iterate();
    while (iterator.next()) |boot| {
        if (boot.stream_was_open) continue;
        // The last packets of a boot that has ended may still arrive.
        if (!boot.isOver() or watch.captures.?.store.find(boot.identity.id) != null) return true;
    }
    return false;
}

fn keepsPackets(watch: *const SegmentWatch) bool {
    return if (watch.captures) |captures| captures.wanted != .never else false;
}

fn hearOutgoing(watch: *SegmentWatch, on: bool) void {
    if (watch.hears_outgoing == on) return;
    watch.hears_outgoing = on;
    for (watch.listeners) |*listener| listener.hearOutgoing(on);
}

fn listen(watch: *SegmentWatch, epoll: Epoll, token: u64, on: bool) void {
    watch.is_listening = on;
    for (watch.listeners) |*listener|
        epoll.modify(listener.fd, if (on) .read else .none, token) catch {};
}

const Verdict = enum { taken, waits, strange };

fn take(watch: *SegmentWatch, at_us: u64, frame: *const Frame) Verdict {
    const packet = wire.ethernet.parse(frame.bytes) catch return .strange;
    if (packet.transport == .udp) {
        if (wire.dhcp.parse(packet.payload, &watch.scratch)) |dhcp|
            return watch.takeDhcp(at_us, frame, packet.source.ip, &dhcp)
        else |_| {}
    }
    const captures = watch.captures orelse return .taken;
    const mac = if (frame.is_outgoing) packet.destination_mac else packet.source_mac;
    if (watch.boots.table.findByMac(mac)) |ref| {
        captures.add(watch.boots.get(ref).?, captured(frame));
    } else {
        const ip = if (watch.own.has(packet.source.ip)) packet.destination.ip else packet.source.ip;
        captures.addOfAddress(watch.boots, ip, captured(frame));
    }
    return .taken;
}

fn takeDhcp(
    watch: *SegmentWatch,
    at_us: u64,
    frame: *const Frame,
    source: base.Ip4,
    dhcp: *const wire.dhcp.Packet,
) Verdict {
    const ref = watch.boots.table.findByMac(dhcp.chaddr) orelse return .waits;
    const boot = watch.boots.get(ref).?;
    // The frame may be the first of the device's next boot, unless it answers what this boot
    // requested.
    if (boot.isOver() and !(dhcp.op == .reply and boot.knowsTransaction(dhcp.xid))) return .waits;
    if (watch.captures) |captures| captures.add(boot, captured(frame));
    switch (dhcp.op) {
        .request => watch.noteRequest(boot, at_us, dhcp),
        .reply => {
            if (frame.is_outgoing or watch.own.has(source)) return .taken;
            const offer = core.boot.packets.Offer.of(dhcp, source, false) orelse return .taken;
            boot.onOffer(at_us, offer);
        },
    }
    return .taken;
}

fn captured(frame: *const Frame) core.boot.CaptureStore.Packet {
    return .{ .bytes = frame.bytes, .size = frame.size, .unix_ns = frame.unix_ns };
}

/// The socket has recorded that the device made a request; this records to which server. Later
/// phases say more about a boot than a frame that arrives late.
fn noteRequest(
    watch: *const SegmentWatch,
    boot: *core.boot.Boot,
    at_us: u64,
    dhcp: *const wire.dhcp.Packet,
) void {
    if (dhcp.options.message_type != .request) return;
    if (boot.current() != .dhcp) return;
    const server = dhcp.options.server_identifier orelse return;
    boot.onPacket(at_us, .from_device, .{ .name = .dhcp_request, .number = server.toInt() });
    // An offer that was sent to the device alone is not heard behind a switch; the device
    // broadcasts which one it accepts.
    if (watch.own.has(server) or boot.offers.hasServer(server)) return;
    boot.onOffer(at_us, .{
        .server = server,
        .ours = false,
        .kind = .address,
        .your_ip = dhcp.options.requested_ip,
    });
}

fn keep(watch: *SegmentWatch, now_us: u64, frame: *const Frame) void {
    const place = &watch.pending[watch.next_pending];
    watch.next_pending = (watch.next_pending + 1) % pending_max;
    const size = @min(frame.bytes.len, place.bytes.len);
    place.size = @intCast(size);
    place.wire_size = frame.size;
    place.unix_ns = frame.unix_ns;
    place.is_outgoing = frame.is_outgoing;
    place.at_us = now_us;
    @memcpy(place.bytes[0..size], frame.bytes[0..size]);
}

fn retry(watch: *SegmentWatch, now_us: u64) void {
    // From the oldest on, so that a boot's frames keep their order.
    for (0..pending_max) |step| {
        const place = &watch.pending[(watch.next_pending + step) % pending_max];
        if (place.size == 0) continue;
        const frame: Frame = .{
            .bytes = place.bytes[0..place.size],
            .size = place.wire_size,
            .unix_ns = place.unix_ns,
            .is_outgoing = place.is_outgoing,
        };
        const is_old = now_us -| place.at_us > pending_us_max;
        if (watch.take(place.at_us, &frame) != .waits or is_old) place.size = 0;
    }
}
