//! Tests of tftp.zig and catalogue.zig: what a download by TFTP does to a boot.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").tftp;
const TestIo = @import("io_test.zig");
const fixture = @import("agent_test.zig");
const testing = std.testing;
const gpa = testing.allocator;
const Site = fixture.Site;
const Tftp = @import("tftp.zig").Tftp(TestIo);
const Catalogue = @import("catalogue.zig").Catalogue(TestIo);
const Ref = core.boot.Table.Ref;

const device: base.Endpoint = .{ .ip = .init(10, 77, 0, 10), .port = 2070 };
const own = fixture.own;

const Link = struct {
    site: *Site,
    catalogue: *Catalogue,
    port: Tftp,
    ref: Ref,
    out: [1024]u8 = undefined,

    fn init(site: *Site) !Link {
        const catalogue = try gpa.create(Catalogue);
        catalogue.* = try .init(gpa, &site.boots, own, 4);
        const server: core.tftp.Server =
            try .init(gpa, catalogue.tftpCatalogue(), .{ .sessions_max = 4, .requests_max = 8 });
        const ref = try site.begin(1);
        return .{
            .site = site,
            .catalogue = catalogue,
            .port = try .init(gpa, server, &site.boots, catalogue),
            .ref = ref,
        };
    }

    fn deinit(link: *Link) void {
        link.port.deinit(gpa);
        link.catalogue.deinit(gpa);
        gpa.destroy(link.catalogue);
    }

    fn boot(link: *Link) *core.boot.Boot {
        return link.site.boot(link.ref);
    }

    fn send(link: *Link, packet: wire.Packet) !void {
        link.site.io.sent.count = 0;
        const bytes = try wire.emit(&packet, &link.out);
        const now_us = link.site.io.now_us;
        link.port.receive(device, bytes, now_us, now_us);
    }

    /// Requests a file below the boot's handle.
    fn request(link: *Link, name: []const u8) !void {
        var buffer: [128]u8 = undefined;
        const handle = link.boot().identity.handle;
        const path = try std.mem.print(&buffer, "b/{x:0>16}/{s}", .{ handle, name });
        try link.send(.{ .rrq = .{ .file_name = path, .options = .{ .tsize = 0 } } });
    }

    fn answer(link: *Link) !wire.Packet {
        const sent = &link.site.io.sent;
        try testing.expectEqual(1, sent.count);
        return wire.parse(sent.buffer[0].bytes());
    }
};

test "a boot program's download is the boot's first phase, and its last acknowledgement ends that" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    try link.request("undionly.kpxe");
    try testing.expectEqual(7, (try link.answer()).oack.tsize.?);
    const boot = link.boot();
    try testing.expectEqual(.nbp, boot.current().?);
    try testing.expect(boot.facts.ip.?.eql(device.ip));
    const nbp = boot.record(.nbp).?;
    try testing.expectEqual(1, nbp.traffic.packets_in);
    try testing.expectEqual(1, nbp.traffic.packets_out);
    try testing.expect(nbp.traffic.bytes_in > 0 and nbp.traffic.bytes_out > 0);
    try testing.expectEqual(0, site.io.tftp_acks);
    try link.send(.{ .ack = 0 });
    try testing.expectEqual(1, site.io.blocks.?.first);
    try testing.expectEqual(1, site.io.tftp_acks);
    try testing.expectEqual(2, nbp.traffic.packets_in);
    try testing.expectEqual(2, nbp.traffic.packets_out);
    try testing.expectEqual(.tftp_data, boot.last_packets.from_edge.?.packet.name);
    try testing.expectEqual(1, boot.last_packets.from_edge.?.packet.number);
    try testing.expectEqualStrings("program", link.catalogue.memory(site.io.blocks.?.source).?);
    try link.send(.{ .ack = 1 });
    try testing.expectEqual(.loader, boot.current().?);
    try testing.expectEqual(3, boot.record(.nbp).?.traffic.packets_in);
    try testing.expectEqual(2, site.io.tftp_acks);
    try testing.expectEqual(boot.record(.nbp).?.traffic.bytes_out, link.port.sent_bytes);
    for (link.port.owners) |owner| try testing.expectEqual(null, owner);
}

test "kernel and initrd are files of the boot's version, read as long as the transfer lasts" {
    const site: *Site = try .create();
    defer site.destroy();
    site.open(1).kernel = .{ .fd = 3, .size = 100 };
    var link: Link = try .init(site);
    defer link.deinit();
    try link.request("kernel");
    try testing.expectEqual(100, (try link.answer()).oack.tsize.?);
    try testing.expect(link.boot().files_begun);
    try link.send(.{ .ack = 0 });
    try testing.expectEqual(1, site.io.open_files);
    const source = site.io.blocks.?.source;
    try testing.expectEqual(null, link.catalogue.memory(source));
    var bytes: [100]u8 = undefined;
    try link.catalogue.read(source, &bytes, 0);
    try testing.expectEqual('k', bytes[99]);
    try link.send(.{ .ack = 1 });
    try testing.expectEqual(0, site.io.open_files);
    try testing.expect(link.boot().loader_done.kernel);
    try testing.expectEqual(.loader, link.boot().current().?);
    // This version has none.
    try link.request("initrd");
    try testing.expectEqual(.file_not_found, (try link.answer()).err.code);
}

test "a loader's configuration is a script, made for its boot" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    try link.request("pxelinux.cfg/default");
    try link.send(.{ .ack = 0 });
    const text = link.catalogue.memory(site.io.blocks.?.source).?;
    try testing.expect(std.mem.find(u8, text, "quiet") != null);
    try link.send(.{ .ack = 1 });
    try testing.expectEqual(.loader, link.boot().current().?);
    try testing.expect(!link.boot().files_begun);
}

test "a missing program of the boot's own is suspected, a loader's probe shows the loader" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = link.boot();
    boot.facts.program = .{ .set = .init("default"), .file = .init("gone.efi") };
    try link.request("other.efi");
    try testing.expectEqual(null, boot.suspicion);
    try testing.expectEqual(.tftp_error, boot.last_packets.from_edge.?.packet.name);
    try link.request("gone.efi");
    try testing.expectEqual(.nbp_not_found, boot.suspicion.?.cause);
    try testing.expectEqualStrings("gone.efi", boot.suspicion.?.text.slice());
    try testing.expectEqual(null, boot.record(.loader));
    for ([_][]const u8{ "grub/x86_64-efi/command.lst", "pxelinux.cfg/0A4D000A" }) |name| {
        boot.phases[@backingInt(core.boot.phase.Phase.loader)] = null;
        boot.facts.ip = device.ip;
        try link.send(.{ .rrq = .{ .file_name = name, .options = .{} } });
        try testing.expectEqual(.loader, boot.current().?);
    }
    // A bare name that says nothing of a loader is nobody's.
    boot.facts.program = null;
    boot.suspicion = null;
    try link.send(.{ .rrq = .{ .file_name = "other.efi", .options = .{} } });
    try testing.expectEqual(null, boot.suspicion);
}

test "firmware that refuses the options or stops answering is what the boot suffers from" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = link.boot();
    try link.request("undionly.kpxe");
    const refusal: wire.Packet = .{ .err = .{ .code = .option_refused, .text = "User aborted" } };
    try link.send(refusal);
    try testing.expectEqual(.tftp_option_refused, boot.suspicion.?.cause);
    try testing.expectEqualStrings("User aborted", boot.suspicion.?.text.slice());
    try link.request("undionly.kpxe");
    try testing.expectEqual(null, boot.suspicion);
    try link.send(.{ .ack = 0 });
    try link.send(.{ .err = .{ .code = .not_defined, .text = "no space" } });
    try testing.expectEqual(.tftp_refused, boot.suspicion.?.cause);
    try testing.expectEqualStrings("no space", boot.suspicion.?.text.slice());
    try link.request("undionly.kpxe");
    try link.send(.{ .ack = 0 });
    boot.suspicion = null;
    link.port.abort(device, site.io.now_us);
    try testing.expectEqual(null, boot.suspicion);
    for (link.port.owners) |owner| try testing.expectEqual(null, owner);
    try link.request("undionly.kpxe");
    site.io.now_us += 3600 * std.time.us_per_s;
    link.port.tick(site.io.now_us);
    try testing.expectEqual(.tftp_timeout, boot.suspicion.?.cause);
}

test "requests without a handle are looked up by address a limited number of times a second" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    link.boot().facts.ip = device.ip;
    const name = "grub/x86_64-efi/command.lst";
    const packet: wire.Packet = .{ .rrq = .{ .file_name = name, .options = .{} } };
    const loader = &link.boot().phases[@backingInt(core.boot.phase.Phase.loader)];
    link.port.lookups_left = 1;
    link.port.lookups_until_us = site.io.now_us + 1;
    for ([_]bool{ true, false, true }, [_]u32{ 0, 0, 999 }) |is_found, left| {
        loader.* = null;
        try link.send(packet);
        try testing.expectEqual(is_found, loader.* != null);
        try testing.expectEqual(left, link.port.lookups_left);
        if (!is_found) site.io.now_us += 1;
    }
}
