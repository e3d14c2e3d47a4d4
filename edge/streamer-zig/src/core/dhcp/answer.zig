//! Builds the answer to a DHCP packet and chooses its destination: the form that real firmware
//! accepts (RFC 2131 section 4.1, PXE 2.1, RFC 4578), sent to the port that the request came from
//! or to its relay agent. It decides nothing about addresses.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const dhcp = @import("wire").dhcp;
const boot_client = @import("../boot/client.zig");
const BootHandle = @import("../boot/handle.zig");
const Endpoint = base.Endpoint;
const Ip4 = base.Ip4;
const Mac = base.Mac;
const BootClient = boot_client.BootClient;
const Programs = boot_client.Programs;

pub const Buffer = [dhcp.packet_size_max]u8;

pub const Reply = struct {
    destination: Endpoint,
    /// Points into the reply buffer.
    payload: []const u8,
    message_type: dhcp.MessageType,
    mac: Mac,
    /// The edge's own address in this answer.
    server_ip: Ip4,
    /// The device's address: assigned here, or the one it has.
    ip: ?Ip4,
    /// False for plain clients, NAK, and where no program fits the architecture (server mode).
    names_boot_file: bool,
};

/// The client of a network boot and the file that it is to load; null where no program fits.
pub const Boot = struct { client: *const BootClient, file: ?[]const u8 };

/// The boot that an answer belongs to, and the programs that its device may load first.
pub const BootChoice = struct {
    handle: BootHandle,
    /// Programs of the device's boot program set; empty if the edge has no such set.
    programs: Programs,
    /// iPXE, too, is told to load a program instead of its script.
    ipxe_takes_program: bool = false,
};

/// Starts an answer with the server identifier only. A relay agent's option is returned unchanged
/// (RFC 3046 section 2.2).
pub fn begin(packet: *const dhcp.Packet, server_ip: Ip4) dhcp.Packet {
    return .{
        .op = .reply,
        .xid = packet.xid,
        .broadcast = packet.broadcast,
        .ciaddr = packet.ciaddr,
        .giaddr = packet.giaddr,
        .chaddr = packet.chaddr,
        .options = .{
            .server_identifier = server_ip,
            .relay_agent = packet.options.relay_agent,
            // RFC 3011 section 2: a server that honours the option returns it.
            .subnet_selection = packet.options.subnet_selection,
        },
    };
}

pub fn typeOf(message_type: dhcp.MessageType) dhcp.MessageType {
    return switch (message_type) {
        .discover => .offer,
        .request, .inform => .ack,
        else => unreachable,
    };
}

/// PXE_DISCOVERY_CONTROL (6), one byte, 8: use the file of this offer and contact no boot server.
/// Without it OVMF sends another request to port 4011. 255 ends the list.
const pxe_discovery_control = [_]u8{ 6, 1, 8, 255 };

/// Firmware ignores offers without option 60, and old iPXE ignores those whose siaddr is 0.
pub fn addBoot(out: *dhcp.Packet, packet: *const dhcp.Packet, server_ip: Ip4, boot: Boot) void {
    out.options.vendor_class = switch (boot.client.loader) {
        .pxe, .ipxe => boot_client.pxe_class,
        .http => boot_client.http_class,
    };
    out.options.client_machine_id = packet.options.client_machine_id;
    out.siaddr = server_ip;
    const file = boot.file orelse return;
    out.options.vendor_specific = &pxe_discovery_control;
    out.file = file;
}

/// Writes the answer. `source` is where the request came from.
pub fn finish(
    out: *dhcp.Packet,
    packet: *const dhcp.Packet,
    source: Endpoint,
    ip: ?Ip4,
    buffer: *Buffer,
) Reply {
    // A relay agent can deliver an answer without an address only by broadcast: a proxy's offer,
    // and a NAK (RFC 2131 section 4.3.2).
    if (!packet.giaddr.isZero() and out.yiaddr.isZero() and out.ciaddr.isZero())
        out.broadcast = true;
    const size_max = dhcp.replySizeMax(packet.options.max_message_size);
    const payload = dhcp.emitWithin(out, size_max, buffer) catch unreachable;
    assert(payload.len <= size_max);
    return .{
        .destination = destinationOf(packet, source),
        .payload = payload,
        .message_type = out.options.message_type.?,
        .mac = out.chaddr,
        .server_ip = out.options.server_identifier.?,
        .ip = ip,
        .names_boot_file = out.file.len > 0,
    };
}

/// RFC 2131 section 4.1: to the relay agent, else to the client's own address, else by broadcast. A
/// client without an address is reachable only by broadcast unless the kernel's neighbour table is
/// changed, and the RFC allows it.
fn destinationOf(packet: *const dhcp.Packet, source: Endpoint) Endpoint {
    if (!packet.giaddr.isZero()) return .{ .ip = packet.giaddr, .port = dhcp.server_port };
    if (!source.ip.isZero()) return source;
    const is_inform = packet.options.message_type == .inform;
    if (is_inform and packet.ciaddr.isUnicast())
        return .{ .ip = packet.ciaddr, .port = source.port };
    return .{ .ip = .broadcast, .port = source.port };
}

/// Returns the path or URL for this client; null where no published program fits its architecture.
pub fn bootFile(
    server: Endpoint,
    client: *const BootClient,
    choice: *const BootChoice,
    buffer: *[dhcp.file_size_max]u8,
) ?[]const u8 {
    const loader: boot_client.Loader =
        if (choice.ipxe_takes_program and client.loader == .ipxe) .pxe else client.loader;
    const name = switch (loader) {
        .ipxe => "boot.ipxe",
        .pxe, .http => choice.programs.of(client.arch) orelse return null,
    };
    assert(name.len <= Programs.name_size_max);
    var writer: base.ByteWriter = .init(buffer);
    switch (loader) {
        .ipxe, .http => writer.print("http://{f}/", .{server}) catch unreachable,
        .pxe => {},
    }
    writer.print("b/{f}/{s}", .{ choice.handle, name }) catch unreachable;
    return writer.written();
}

comptime {
    const url_size_max = "http:///b//".len + Endpoint.text_size_max +
        BootHandle.text_size + Programs.name_size_max;
    assert(url_size_max <= dhcp.file_size_max);
}
