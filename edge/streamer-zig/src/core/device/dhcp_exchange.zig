//! DHCP as a network ROM or iPXE performs it (RFC 2131, PXE 2.1): DISCOVER, the offers of a DHCP
//! server, a proxy, or both in one, and REQUEST if an address was offered. No clock and no socket.

const std = @import("std");
const base = @import("base");
const dhcp = @import("wire").dhcp;
const assert = std.debug.assert;
const DhcpExchange = @This();

pub const attempts_max = 5;
pub const timeout_us_first = std.time.us_per_s;
/// How long iPXE waits for a proxy's offer when it has an address and no boot file (boot client
/// notes, iPXE 1.21).
const proxy_wait_us = 3 * std.time.us_per_s;
pub const vendor_class = "PXEClient:Arch:00000:UNDI:002001";

/// The sender: the ROM of a simulated device, or the iPXE that it loaded.
pub const Stage = enum { rom, ipxe };

pub const Options = struct {
    mac: base.Mac,
    stage: Stage,
    xid: u32,
    /// The device has an address already and accepts a proxy's offer alone.
    has_address: bool,
    /// Requests broadcast answers: no unicast packet reaches an address that is not configured yet.
    broadcast: bool,
};

pub const Answer = struct {
    address: ?base.Ip4,
    subnet_mask: ?base.Ip4,
    next_server: base.Ip4,
    file_buffer: [dhcp.file_size_max]u8,
    file_size: u8,

    pub fn file(given: *const Answer) []const u8 {
        return given.file_buffer[0..given.file_size];
    }
};

const State = enum { selecting, requesting, done, failed };

options: Options,
state: State = .selecting,
attempts: u8 = 0,
due_at_us: u64,
/// When to continue without a proxy's offer.
proxy_until_us: ?u64 = null,
offered_address: ?base.Ip4 = null,
subnet_mask: ?base.Ip4 = null,
server: ?base.Ip4 = null,
boot: ?Boot = null,

const Boot = struct { next_server: base.Ip4, file_buffer: [dhcp.file_size_max]u8, file_size: u8 };

pub fn init(now_us: u64, options: Options) DhcpExchange {
    return .{ .options = options, .due_at_us = now_us };
}

/// Returns the packet to send now, or null. After the last attempt the exchange has failed.
pub fn transmit(
    exchange: *DhcpExchange,
    now_us: u64,
    buffer: *[dhcp.packet_size_max]u8,
) ?[]const u8 {
    if (exchange.state == .done or exchange.state == .failed) return null;
    if (now_us < exchange.due_at_us) return null;
    if (exchange.attempts == attempts_max) {
        exchange.state = .failed;
        return null;
    }
    assert(exchange.attempts < attempts_max);
    const doublings: u6 = @intCast(exchange.attempts);
    exchange.due_at_us = now_us + (@as(u64, timeout_us_first) << doublings);
    exchange.attempts += 1;
    const packet = exchange.packetNow();
    // Fields of fixed size, far below the limit.
    return dhcp.emit(&packet, buffer) catch unreachable;
}

/// Returns true if the packet belonged to this exchange.
pub fn receive(exchange: *DhcpExchange, now_us: u64, payload: []const u8) bool {
    if (exchange.state == .done or exchange.state == .failed) return false;
    var scratch: dhcp.Scratch = undefined;
    const packet = dhcp.parse(payload, &scratch) catch return false;
    if (packet.op != .reply or packet.xid != exchange.options.xid) return false;
    if (!packet.chaddr.eql(exchange.options.mac)) return false;
    switch (packet.options.message_type orelse return false) {
        .offer => if (exchange.state == .selecting)
            exchange.takeOffer(now_us, &packet)
        else
            return false,
        .ack => if (exchange.state == .requesting) exchange.takeAck(&packet) else return false,
        .nak => {
            if (exchange.state != .requesting) return false;
            exchange.* = .init(now_us, exchange.options);
        },
        else => return false,
    }
    return true;
}

/// Continues without a proxy's offer when its time is over.
pub fn tick(exchange: *DhcpExchange, now_us: u64) void {
    const until_us = exchange.proxy_until_us orelse return;
    if (exchange.state != .selecting or now_us < until_us) return;
    // An address and no boot file: this network has no boot service.
    exchange.state = .failed;
}

pub fn deadline(exchange: *const DhcpExchange) u64 {
    if (exchange.state != .selecting) return exchange.due_at_us;
    return @min(exchange.due_at_us, exchange.proxy_until_us orelse std.math.maxInt(u64));
}

pub fn answer(exchange: *const DhcpExchange) ?Answer {
    if (exchange.state != .done) return null;
    const boot = exchange.boot.?;
    return .{
        .address = exchange.offered_address,
        .subnet_mask = exchange.subnet_mask,
        .next_server = boot.next_server,
        .file_buffer = boot.file_buffer,
        .file_size = boot.file_size,
    };
}

fn takeOffer(exchange: *DhcpExchange, now_us: u64, packet: *const dhcp.Packet) void {
    assert(exchange.state == .selecting);
    exchange.takeBoot(packet);
    if (!packet.yiaddr.isZero() and exchange.offered_address == null) {
        exchange.offered_address = packet.yiaddr;
        exchange.subnet_mask = packet.options.subnet_mask;
        exchange.server = packet.options.server_identifier;
    }
    if (exchange.boot == null) {
        exchange.proxy_until_us = now_us + proxy_wait_us;
    } else if (exchange.offered_address != null) {
        exchange.state = .requesting;
        exchange.attempts = 0;
        exchange.due_at_us = now_us;
    } else if (exchange.options.has_address) exchange.state = .done;
}

fn takeAck(exchange: *DhcpExchange, packet: *const dhcp.Packet) void {
    assert(exchange.state == .requesting);
    assert(exchange.offered_address != null);
    if (!packet.yiaddr.eql(exchange.offered_address.?)) return;
    exchange.takeBoot(packet);
    exchange.state = .done;
}

fn takeBoot(exchange: *DhcpExchange, packet: *const dhcp.Packet) void {
    assert(exchange.state != .failed);
    const name = packet.bootFileName() orelse return;
    if (name.len == 0 or name.len > dhcp.file_size_max) return;
    const server = if (!packet.siaddr.isZero())
        packet.siaddr
    else
        packet.options.server_identifier orelse return;
    var boot: Boot =
        .{ .next_server = server, .file_buffer = undefined, .file_size = @intCast(name.len) };
    @memcpy(boot.file_buffer[0..name.len], name);
    exchange.boot = boot;
}

fn packetNow(exchange: *const DhcpExchange) dhcp.Packet {
    const options = &exchange.options;
    const is_request = exchange.state == .requesting;
    var guid: [16]u8 = @splat(0xbf);
    guid[10..16].* = options.mac.bytes;
    return .{
        .op = .request,
        .xid = options.xid,
        .broadcast = options.broadcast,
        .chaddr = options.mac,
        .options = .{
            .message_type = if (is_request) .request else .discover,
            .requested_ip = if (is_request) exchange.offered_address else null,
            .server_identifier = if (is_request) exchange.server else null,
            .parameter_request_list = &.{ 1, 3, 6, 43, 54, 60, 66, 67, 97, 175 },
            .max_message_size = 1472,
            .vendor_class = vendor_class,
            .user_class = switch (options.stage) {
                .rom => "bootfarm-sim",
                .ipxe => "iPXE",
            },
            .client_arch = .bios,
            .client_ndi = .{ 1, 2, 1 },
            .client_machine_id = .{ .guid = guid },
            // iPXE feature list: HTTP (0x13) present.
            .ipxe = if (options.stage == .ipxe) &.{ 0x13, 1, 1 } else null,
        },
    };
}
