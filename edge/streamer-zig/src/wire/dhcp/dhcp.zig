//! DHCP packets: RFC 2131 (layout) with the options of `options.zig`, parsed and emitted.
//! Strict about lengths, tolerant where real firmware is loose. It must never decide what to
//! answer.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const options_format = @import("options.zig");
const options_emit = @import("emit.zig");
const Ip4 = base.Ip4;
const Mac = base.Mac;

pub const Options = options_format.Options;
const OptionCode = options_format.Code;
pub const MessageType = options_format.MessageType;
pub const ClientArch = options_format.ClientArch;
pub const MachineId = options_format.MachineId;
pub const Scratch = options_format.Scratch;

pub const server_port = 67;
pub const client_port = 68;
/// The port of boot servers (PXE 2.1, section 2.2.1).
const pxe_port = 4011;

/// The fixed fields, up to and with the magic cookie.
pub const header_size = 240;
/// RFC 1542 section 2.1: BOOTP relays and old ROMs drop shorter packets.
pub const packet_size_min = 300;
/// More than any client sends at an MTU of 1500; longer packets are refused.
pub const packet_size_max = 1500;
/// The size that every client accepts: an IP packet of 576 bytes (RFC 2131 section 2), less its
/// headers.
pub const reply_size_min = 576 - ip_udp_size;
/// The size that crosses an Ethernet segment unfragmented.
pub const reply_size_max = 1500 - ip_udp_size;
const ip_udp_size = 28;
pub const sname_size_max = 64;
pub const file_size_max = 128;

const magic_cookie: u32 = 0x63825363;
const ethernet_type: u8 = 1;
const flag_broadcast: u16 = 0x8000;

comptime {
    assert(4 + 4 + 2 + 2 + 4 * 4 + 16 + sname_size_max + file_size_max + 4 == header_size);
    // `dhcp_options.parse` joins long options in the scratch buffer; all of them fit.
    assert(packet_size_max <= options_format.scratch_size);
}

pub const Op = enum(u8) { request = 1, reply = 2 };

/// One packet. Slices point into the parsed bytes or the scratch, and live as long as both.
pub const Packet = struct {
    op: Op,
    hops: u8 = 0,
    xid: u32,
    secs: u16 = 0,
    /// The client cannot receive a unicast answer yet.
    broadcast: bool = false,
    ciaddr: Ip4 = .zero,
    yiaddr: Ip4 = .zero,
    siaddr: Ip4 = .zero,
    giaddr: Ip4 = .zero,
    chaddr: Mac,
    /// At most 64 bytes, without a zero byte.
    sname: []const u8 = "",
    /// At most 128 bytes, without a zero byte.
    file: []const u8 = "",
    options: Options = .{},

    /// The boot file's name, in whichever field the server put it.
    pub fn bootFileName(packet: *const Packet) ?[]const u8 {
        if (packet.options.boot_file_name) |name| return std.mem.trimEnd(u8, name, "\x00");
        return if (packet.file.len > 0) packet.file else null;
    }
};

pub const ParseError = error{ Truncated, TooLong, NotDhcp, NotEthernet, BadOption };

/// Parses one UDP payload. `scratch` holds long options that the packet carries in parts.
pub fn parse(payload: []const u8, scratch: *Scratch) ParseError!Packet {
    if (payload.len > packet_size_max) return error.TooLong;
    var cursor: base.Cursor = .init(payload);
    const op = std.enums.fromInt(Op, try cursor.int(u8)) orelse return error.NotDhcp;
    const hardware_type = try cursor.int(u8);
    const hardware_size = try cursor.int(u8);
    const hops = try cursor.int(u8);
    const xid = try cursor.int(u32);
    const secs = try cursor.int(u16);
    // RFC 2131 section 2: the other flag bits must be zero and are ignored by servers.
    const flags = try cursor.int(u16);
    var packet: Packet = .{
        .op = op,
        .hops = hops,
        .xid = xid,
        .secs = secs,
        .broadcast = flags & flag_broadcast != 0,
        .ciaddr = .{ .bytes = (try cursor.array(4)).* },
        .yiaddr = .{ .bytes = (try cursor.array(4)).* },
        .siaddr = .{ .bytes = (try cursor.array(4)).* },
        .giaddr = .{ .bytes = (try cursor.array(4)).* },
        .chaddr = .{ .bytes = (try cursor.array(16))[0..6].* },
    };
    const sname = try cursor.bytes(sname_size_max);
    const file = try cursor.bytes(file_size_max);
    if (try cursor.int(u32) != magic_cookie) return error.NotDhcp;
    if (hardware_type != ethernet_type) return error.NotEthernet;
    if (hardware_size != 6) return error.NotEthernet;
    const parsed = try options_format.parse(
        .{ .options = cursor.rest(), .file = file, .sname = sname },
        scratch,
    );
    packet.options = parsed.options;
    if (!parsed.sname_overloaded) packet.sname = untilZero(sname);
    if (!parsed.file_overloaded) packet.file = untilZero(file);
    return packet;
}

pub const EmitError = error{ NoSpace, TooLong };

/// Writes a packet and returns it, padded to the 300 bytes that relays and ROMs expect.
/// TooLong: `sname` or `file` does not fit its field.
pub fn emit(packet: *const Packet, buffer: []u8) EmitError![]u8 {
    if (packet.sname.len > sname_size_max) return error.TooLong;
    if (packet.file.len > file_size_max) return error.TooLong;
    var writer: base.ByteWriter = .init(buffer);
    try writer.int(u8, @backingInt(packet.op));
    try writer.int(u8, ethernet_type);
    try writer.int(u8, 6);
    try writer.int(u8, packet.hops);
    try writer.int(u32, packet.xid);
    try writer.int(u16, packet.secs);
    try writer.int(u16, if (packet.broadcast) flag_broadcast else 0);
    for ([_]Ip4{ packet.ciaddr, packet.yiaddr, packet.siaddr, packet.giaddr }) |ip|
        try writer.bytes(&ip.bytes);
    try writer.bytes(&packet.chaddr.bytes);
    try writer.fill(0, 10);
    try emitField(&writer, packet.sname, sname_size_max);
    try emitField(&writer, packet.file, file_size_max);
    try writer.int(u32, magic_cookie);
    assert(writer.position == header_size);
    try options_emit.emit(&packet.options, &writer);
    if (writer.position < packet_size_min) try writer.fill(0, packet_size_min - writer.position);
    return writer.written();
}

/// Writes an answer of at most this many bytes. Options that do not fit go to `file` and `sname` if
/// these are free (option 52), and the least important ones are left out. `relay_agent` is at most
/// 255 bytes.
pub fn emitWithin(packet: *const Packet, size_max: usize, buffer: []u8) error{TooLong}![]u8 {
    assert(size_max >= reply_size_min);
    assert(buffer.len >= size_max);
    if (packet.options.relay_agent) |value| assert(value.len <= 255);
    var without_options = packet.*;
    without_options.options = .{};
    _ = emit(&without_options, buffer) catch |err| switch (err) {
        error.TooLong => return error.TooLong,
        error.NoSpace => unreachable,
    };
    const sname_at = header_size - 4 - file_size_max - sname_size_max;
    const sname = buffer[sname_at..][0..sname_size_max];
    const file = buffer[sname_at + sname_size_max ..][0..file_size_max];
    const part = options_emit.emitWithin(&packet.options, .{
        .options = buffer[header_size..size_max],
        .file = if (packet.file.len == 0) file else null,
        .sname = if (packet.sname.len == 0) sname else null,
    });
    const size = header_size + part.size;
    if (size >= packet_size_min) return buffer[0..size];
    @memset(buffer[size..packet_size_min], 0);
    return buffer[0..packet_size_min];
}

/// Returns the maximum size of an answer to this client: option 57 covers the whole IP packet.
pub fn replySizeMax(max_message_size: ?u16) usize {
    const whole = max_message_size orelse return reply_size_min;
    return std.math.clamp(@as(usize, whole) -| ip_udp_size, reply_size_min, reply_size_max);
}

/// Returns the counter of a refused packet.
pub fn ignoreReason(refusal: ParseError) base.IgnoreReason {
    return switch (refusal) {
        error.Truncated => .dhcp_truncated,
        error.TooLong => .dhcp_too_long,
        error.NotDhcp => .dhcp_not_dhcp,
        error.NotEthernet => .dhcp_not_ethernet,
        error.BadOption => .dhcp_bad_option,
    };
}

fn untilZero(field: []const u8) []const u8 {
    const size = std.mem.findScalar(u8, field, 0) orelse field.len;
    return field[0..size];
}

fn emitField(writer: *base.ByteWriter, text: []const u8, size: usize) base.ByteWriter.Error!void {
    assert(text.len <= size);
    try writer.bytes(text);
    try writer.fill(0, size - text.len);
}
