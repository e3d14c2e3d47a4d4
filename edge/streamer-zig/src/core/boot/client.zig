//! Recognizes a network boot in a DHCP packet, describes its device, and picks the boot program for
//! its architecture (RFC 4578, PXE 2.1). Pure.

const std = @import("std");
const base = @import("base");
const dhcp = @import("wire").dhcp;
const Ip4 = base.Ip4;
const Mac = base.Mac;

pub const pxe_class = "PXEClient";
pub const http_class = "HTTPClient";
/// The user class of `bootfarm-edge doctor`, which sends requests like a device and boots nothing.
pub const doctor_class = "bootfarm-doctor";

pub const Loader = enum { pxe, http, ipxe };

/// What a network boot reveals about its device. Values only: it may be kept.
pub const BootClient = struct {
    mac: Mac,
    message_type: dhcp.MessageType,
    loader: Loader,
    arch: dhcp.ClientArch,
    machine_id: ?base.Uuid,
    vendor_class: base.UntrustedText,
    user_class: base.UntrustedText,
    /// As far as it is known yet.
    ip: ?Ip4,

    /// The names people use; options 93 and 60 distinguish more kinds.
    pub fn archText(arch: dhcp.ClientArch) []const u8 {
        return switch (arch) {
            .bios => "BIOS",
            .uefi_x86, .uefi_x86_http => "32-bit UEFI",
            .uefi_x64, .uefi_x64_by_rfc4578, .uefi_x64_http => "x64 UEFI",
            .uefi_arm64, .uefi_arm64_http => "arm64 UEFI",
            _ => "this architecture",
        };
    }

    /// Returns null for a client that does not boot from the network.
    pub fn of(packet: *const dhcp.Packet, message_type: dhcp.MessageType) ?BootClient {
        const options = &packet.options;
        const vendor_class = options.vendor_class orelse "";
        if (options.userClassText()) |text| if (std.mem.eql(u8, text, doctor_class)) return null;
        const is_http = std.mem.startsWith(u8, vendor_class, http_class);
        const loader: Loader = if (options.isIpxe())
            .ipxe
        else if (is_http)
            .http
        else if (std.mem.startsWith(u8, vendor_class, pxe_class)) .pxe else return null;
        return .{
            .mac = packet.chaddr,
            .message_type = message_type,
            .loader = loader,
            .arch = options.client_arch orelse archOfClass(vendor_class),
            .machine_id = if (options.client_machine_id) |id| id.uuid() else null,
            .vendor_class = .init(vendor_class),
            .user_class = .init(options.userClassText() orelse ""),
            // The address in a DISCOVER is only requested.
            .ip = if (message_type == .discover) null else addressOf(packet),
        };
    }
};

/// The published program for each kind of firmware. Slices live as long as the service.
pub const Programs = struct {
    bios: ?[]const u8 = null,
    uefi_x64: ?[]const u8 = null,
    uefi_arm64: ?[]const u8 = null,

    /// The path must fit the `file` field of a packet together with an address.
    pub const name_size_max = 64;

    /// Picks from the names of the published files; null where none fits.
    pub fn choose(published: []const []const u8) Programs {
        return .{
            .bios = find(published, &.{"undionly.kpxe"}),
            .uefi_x64 = find(published, &.{ "snponly.efi", "ipxe.efi" }),
            .uefi_arm64 = find(published, &.{ "ipxe-arm64.efi", "grubnetaa64.efi.signed" }),
        };
    }

    fn find(published: []const []const u8, wanted: []const []const u8) ?[]const u8 {
        for (wanted) |name| for (published) |candidate| {
            if (std.mem.eql(u8, candidate, name)) return candidate;
        };
        return null;
    }

    pub fn of(programs: *const Programs, arch: dhcp.ClientArch) ?[]const u8 {
        return switch (arch) {
            .bios => programs.bios,
            .uefi_x64, .uefi_x64_by_rfc4578, .uefi_x64_http => programs.uefi_x64,
            .uefi_arm64, .uefi_arm64_http => programs.uefi_arm64,
            .uefi_x86, .uefi_x86_http => null,
            _ => null,
        };
    }
};

/// The address that a client has or requests.
pub fn addressOf(packet: *const dhcp.Packet) ?Ip4 {
    if (packet.ciaddr.isUnicast()) return packet.ciaddr;
    const requested = packet.options.requested_ip orelse return null;
    return if (requested.isUnicast()) requested else null;
}

/// Parses `PXEClient:Arch:00007:...` (PXE 2.1, section 2.2.3), for clients without option 93. BIOS
/// if the class names none.
fn archOfClass(vendor_class: []const u8) dhcp.ClientArch {
    const marker = ":Arch:";
    const at = std.mem.find(u8, vendor_class, marker) orelse return .bios;
    const rest = vendor_class[at + marker.len ..];
    if (rest.len < 5) return .bios;
    for (rest[0..5]) |digit| if (!std.ascii.isDigit(digit)) return .bios;
    const number = std.fmt.parseInt(u16, rest[0..5], 10) catch return .bios;
    return @fromBackingInt(number);
}

const testing = std.testing;

fn testRequest(message_type: dhcp.MessageType, vendor_class: []const u8) dhcp.Packet {
    return .{
        .op = .request,
        .xid = 1,
        .chaddr = .{ .bytes = .{ 2, 0, 0, 0, 0, 1 } },
        .options = .{ .message_type = message_type, .vendor_class = vendor_class },
    };
}

test "a client without option 93 names its architecture in its class, or is a BIOS machine" {
    const cases = [_]struct { []const u8, dhcp.ClientArch }{
        .{ "PXEClient:Arch:00007:UNDI:003016", .uefi_x64 },
        .{ "PXEClient:Arch:00007", .uefi_x64 },
        .{ "PXEClient:Arch:00011", .uefi_arm64 },
        .{ "PXEClient:Arch:0007", .bios },
        .{ "PXEClient:Arch:0007x", .bios },
        .{ "PXEClient:Arch:99999", .bios },
        .{ "PXEClient", .bios },
    };
    for (cases) |case| {
        const packet = testRequest(.discover, case[0]);
        try testing.expectEqual(case[1], BootClient.of(&packet, .discover).?.arch);
    }
    var named = testRequest(.discover, "PXEClient:Arch:00007");
    named.options.client_arch = .uefi_arm64;
    try testing.expectEqual(.uefi_arm64, BootClient.of(&named, .discover).?.arch);
}

test "only a REQUEST or INFORM tells the address that a client has" {
    const ip: Ip4 = .init(10, 0, 0, 7);
    for (
        [_]dhcp.MessageType{ .discover, .request, .inform },
        [_]bool{ false, true, true },
    ) |message_type, is_known| {
        var packet = testRequest(message_type, "PXEClient");
        packet.options.requested_ip = ip;
        const client = BootClient.of(&packet, message_type).?;
        try testing.expectEqual(is_known, client.ip != null);
        if (client.ip) |known| try testing.expect(known.eql(ip));
    }
}

test "programs are chosen from the published names, the first wanted one that is there" {
    const all: Programs = .choose(&.{ "ipxe.efi", "x", "snponly.efi", "undionly.kpxe" });
    try testing.expectEqualStrings("undionly.kpxe", all.bios.?);
    try testing.expectEqualStrings("snponly.efi", all.uefi_x64.?);
    try testing.expectEqual(null, all.uefi_arm64);
    const some: Programs = .choose(&.{ "ipxe.efi", "grubnetaa64.efi.signed" });
    try testing.expectEqual(null, some.bios);
    try testing.expectEqualStrings("ipxe.efi", some.uefi_x64.?);
    try testing.expectEqualStrings("grubnetaa64.efi.signed", some.uefi_arm64.?);
}
