//! A simulated device in the fake world, and the checks of what it reads.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const core = @import("core");
const disk = @import("disk.zig");
const FakeEdge = @import("fake_edge.zig");
const Network = @import("network.zig");
const Plant = @import("plant.zig").Plant;
const Device = core.Device;
const Endpoint = base.Endpoint;

pub const FakeDevice = @This();

const tftp_port = 2000;
const stream_port_first = 3000;

network: *Network,
plant: Plant,
device: Device,
index: u16,
own_address: ?base.Ip4,
address: ?base.Ip4 = null,
boots: u16 = 0,
/// Of the boot in progress; no second one may ever serve it.
version_id: ?base.Uuid = null,
/// Openings of fake connections, and the answer of the present one.
opening: u32 = 0,
path_buffer: [256]u8 = undefined,
path_size: u16 = 0,
answer: std.ArrayList(u8) = .empty,
answer_body_size: u64 = 0,
outstanding_max: u64 = 0,
/// Flips one byte before the next check.
canary: bool = false,
reads_checked: u64 = 0,
violation: ?[]const u8 = null,

pub fn powerOn(fake: *FakeDevice, random: Device.Random) !void {
    fake.boots += 1;
    fake.version_id = null;
    fake.address = fake.own_address;
    fake.device.powerOn(fake.network.now_us, random);
    try fake.pump();
}

/// Where the boot's stream packets come from: a new port for each boot, as a machine that starts has.
pub fn streamEndpoint(fake: *const FakeDevice) Endpoint {
    return .{ .ip = fake.address orelse .zero, .port = stream_port_first + fake.boots };
}

pub fn receive(fake: *FakeDevice, datagram: *const Network.Datagram) !void {
    const now_us = fake.network.now_us;
    const payload = datagram.payload();
    const is_broadcast = datagram.to.ip.eql(.broadcast);
    const own = fake.address orelse base.Ip4.zero;
    if (!is_broadcast and !datagram.to.ip.eql(own)) return;
    if (datagram.to.port == wire.dhcp.client_port) {
        fake.device.receiveDhcp(now_us, payload);
    } else if (is_broadcast) {
        return;
    } else if (datagram.to.port == tftp_port) {
        fake.device.receiveTftp(now_us, datagram.from, payload);
    } else if (datagram.to.port == fake.streamEndpoint().port and datagram.from.eql(FakeEdge.stream_endpoint)) {
        fake.receiveStream(payload);
    } else return;
    try fake.pump();
}

fn receiveStream(fake: *FakeDevice, payload: []const u8) void {
    var changed: [Network.datagram_size_max]u8 = undefined;
    var bytes = payload;
    if (fake.plant == .fragment_of_another_read) {
        if (fake.asAnotherRead(payload, &changed)) |other| bytes = other;
    }
    fake.device.receiveStream(fake.network.now_us, bytes);
}

/// The same fragment under the request id of another read that is under way.
fn asAnotherRead(fake: *FakeDevice, payload: []const u8, buffer: []u8) ?[]const u8 {
    var packet = wire.stream.parse(payload) catch return null;
    if (packet.body != .data) return null;
    for (fake.device.client.reads) |*read| {
        if (read.state != .asked or read.request_id == packet.request_id) continue;
        packet.request_id = read.request_id;
        return wire.stream.emit(packet, buffer);
    }
    return null;
}

/// Does what the machine wants done.
pub fn pump(fake: *FakeDevice) !void {
    const network = fake.network;
    var buffer: Device.Buffer = undefined;
    while (fake.device.next(network.now_us, &buffer)) |action| {
        const ip = fake.address orelse base.Ip4.zero;
        switch (action) {
            .dhcp => |packet| {
                const to: Endpoint = .{ .ip = FakeEdge.ip, .port = wire.dhcp.server_port };
                try network.send(.{ .ip = ip, .port = wire.dhcp.client_port }, to, packet);
            },
            .use_address => |given| fake.address = given.ip,
            .tftp => |packet| try network.send(.{ .ip = ip, .port = tftp_port }, packet.to, packet.bytes),
            .http_open => |open| {
                fake.opening += 1;
                fake.notePath(open.request);
                try network.connect(1000, .{ .device = fake.index, .opening = fake.opening, .what = .request });
            },
            .http_close => fake.opening += 1,
            .stream_open => {},
            .stream => |packet| try network.send(fake.streamEndpoint(), FakeEdge.stream_endpoint, packet),
            .read_done => |read| fake.check(read.offset, read.bytes),
            .finished => |outcome| {
                network.note(@tagName(outcome));
                if (outcome == .failed) network.note(outcome.failed.text.slice());
            },
        }
    }
    fake.checkBounds();
}

fn notePath(fake: *FakeDevice, request: []const u8) void {
    const line = std.mem.sliceTo(request["GET ".len..], ' ');
    fake.path_size = @intCast(@min(line.len, fake.path_buffer.len));
    @memcpy(fake.path_buffer[0..fake.path_size], line[0..fake.path_size]);
}

pub fn path(fake: *const FakeDevice) []const u8 {
    return fake.path_buffer[0..fake.path_size];
}

/// A piece of the answer arrives: head and script are real bytes, other bodies are zeros.
pub fn receiveHttp(fake: *FakeDevice, first: u64, end: u64) !void {
    var zeros: [16384]u8 = @splat(0);
    var at = first;
    while (at < end) {
        const head = fake.answer.items;
        const piece = if (at < head.len) head[@intCast(at)..@intCast(@min(end, head.len))] else zeros[0..@intCast(@min(end - at, zeros.len))];
        fake.device.receiveHttp(fake.network.now_us, piece);
        at += piece.len;
    }
    try fake.pump();
}

fn check(fake: *FakeDevice, offset: u64, bytes: []const u8) void {
    const version_id = fake.device.client.session.?.version_id;
    const first = fake.version_id orelse version_id;
    fake.version_id = first;
    fake.reads_checked += 1;
    if (!first.eql(version_id)) return fake.violate("a boot read two versions");
    var expected: [core.StreamClient.read_size_max]u8 = undefined;
    disk.fill(first, offset, expected[0..bytes.len]);
    if (fake.canary) expected[bytes.len / 2] ^= 1;
    if (!std.mem.eql(u8, expected[0..bytes.len], bytes)) fake.violate("a read brought wrong bytes");
}

fn checkBounds(fake: *FakeDevice) void {
    const client = &fake.device.client;
    fake.outstanding_max = @max(fake.outstanding_max, client.outstanding_bytes);
    if (client.outstanding_bytes > client.options.outstanding_bytes_max) fake.violate("more is outstanding than allowed");
    if (fake.device.phase == .ready and fake.device.reads_done != fake.device.profile.reads.len)
        fake.violate("ready before all reads were done");
    const timings = &fake.device.timings;
    if (timings.begins.get(.ipxe_dhcp) != null and timings.nbp_bytes < FakeEdge.nbp_size)
        fake.violate("a boot program was taken for whole that was not");
}

fn violate(fake: *FakeDevice, text: []const u8) void {
    if (fake.violation == null) fake.violation = text;
}
