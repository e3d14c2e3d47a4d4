//! Checks whether the kernel's packet filter drops incoming packets unless a rule accepts them: the
//! policies of the input chains, read by nfnetlink (linux/netfilter/nf_tables.h). The iptables of
//! today's systems uses the same tables.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const options_module = @import("../options.zig");
const Findings = @import("findings.zig");
const linux = std.os.linux;

const netlink_netfilter = 12;
const message_get_chain = 10 << 8 | 4;
const attribute_table = 1;
const attribute_name = 3;
const attribute_hook = 4;
const attribute_policy = 5;
const hook_number = 1;
const hook_local_in = 1;
const policy_drop = 0;
const messages_max = 1024;

/// struct nfgenmsg.
const GenericMessage = extern struct { family: u8 = 0, version: u8 = 0, resource: u16 = 0 };

pub fn check(findings: *Findings, options: *const options_module.Serve) error{OutOfMemory}!void {
    var name: base.UntrustedText = .empty;
    const drops = dropsInput(&name) orelse return findings.report(
        .warning,
        .firewall,
        "The packet filter cannot be read by this user.",
        "Run the doctor as root.",
    );
    const ports = &options.ports;
    const others = if (options.isAlone())
        "."
    else
        try findings.print(", and from other edges of the site UDP and TCP {d}.", .{ports.peer});
    if (!drops) return findings.ok(
        .firewall,
        "No packet filter of this machine drops incoming packets by default.",
        .{},
    );
    try findings.report(
        .warning,
        .firewall,
        try findings.print(
            "The packet filter drops what no rule accepts (chain {s}).",
            .{name.slice()},
        ),
        if (options.dhcp == .off)
            try findings.print(
                "Accept UDP {d}, {d} and TCP {d}{s}",
                .{ ports.tftp, ports.stream, ports.http, others },
            )
        else
            try findings.print("Accept UDP {d}, {d}, {d}, {d} and TCP {d}{s}", .{
                ports.dhcp, ports.pxe, ports.tftp, ports.stream, ports.http, others,
            }),
    );
}

/// Returns null if the filter cannot be read.
fn dropsInput(name: *base.UntrustedText) ?bool {
    const kind = linux.SOCK.RAW | linux.SOCK.CLOEXEC;
    const rc = linux.socket(linux.AF.NETLINK, kind, netlink_netfilter);
    const fd: i32 = @intCast(host.sys.check(rc) catch return null);
    defer host.sys.close(fd);
    const Request = extern struct { header: linux.nlmsghdr, message: GenericMessage };
    const request: Request = .{
        .header = .{
            .len = @sizeOf(Request),
            .type = @fromBackingInt(message_get_chain),
            .flags = linux.NLM_F_REQUEST | linux.NLM_F_DUMP,
            .seq = 1,
            .pid = 0,
        },
        .message = .{},
    };
    const bytes = std.mem.asBytes(&request);
    _ = host.sys.check(linux.sendto(fd, bytes, bytes.len, 0, null, 0)) catch return null;
    for (0..messages_max) |_| {
        var buffer: [16384]u8 align(4) = undefined;
        const size = host.sys.check(linux.recvfrom(fd, &buffer, buffer.len, 0, null, null)) catch
            return null;
        switch (search(buffer[0..size], name)) {
            .more => {},
            .nothing => return false,
            .drops => return true,
            .refused => return null,
        }
    }
    return false;
}

fn search(
    bytes: []align(4) const u8,
    name: *base.UntrustedText,
) enum { more, nothing, drops, refused } {
    const header_size = @sizeOf(linux.nlmsghdr);
    var at: usize = 0;
    while (bytes.len - at >= header_size) {
        const header = std.mem.bytesToValue(linux.nlmsghdr, bytes[at..][0..header_size]);
        if (header.len < header_size or header.len > bytes.len - at) return .nothing;
        if (header.type == .DONE) return .nothing;
        if (header.type == .ERROR) return .refused;
        const begin = at + header_size + @sizeOf(GenericMessage);
        if (begin <= at + header.len and isDroppingInput(bytes[begin .. at + header.len], name))
            return .drops;
        at += @min(std.mem.alignForward(usize, header.len, 4), bytes.len - at);
    }
    return .more;
}

fn isDroppingInput(attributes: []const u8, name: *base.UntrustedText) bool {
    const policy = numberOf(attributes, attribute_policy) orelse return false;
    const hook = valueOf(attributes, attribute_hook) orelse return false;
    const number = numberOf(hook, hook_number) orelse return false;
    if (policy != policy_drop or number != hook_local_in) return false;
    var buffer: [64]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    for ([_]u16{ attribute_table, attribute_name }) |kind|
        // A name that is too long is cut.
        writer.print("{s} ", .{std.mem.sliceTo(valueOf(attributes, kind) orelse "", 0)}) catch {};
    name.* = .init(std.mem.trim(u8, writer.buffered(), " "));
    return true;
}

fn valueOf(attributes: []const u8, wanted: u16) ?[]const u8 {
    const kind_mask = 0x3fff;
    var at: usize = 0;
    while (attributes.len - at >= 4) {
        const size = std.mem.readInt(u16, attributes[at..][0..2], .native);
        const kind = std.mem.readInt(u16, attributes[at + 2 ..][0..2], .native) & kind_mask;
        if (size < 4 or size > attributes.len - at) return null;
        if (kind == wanted) return attributes[at + 4 .. at + size];
        at += @min(std.mem.alignForward(usize, size, 4), attributes.len - at);
    }
    return null;
}

fn numberOf(attributes: []const u8, wanted: u16) ?u32 {
    const value = valueOf(attributes, wanted) orelse return null;
    return if (value.len == 4) std.mem.readInt(u32, value[0..4], .big) else null;
}
