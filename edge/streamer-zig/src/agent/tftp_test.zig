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
    const file = boot.transfers.slots[0].?;
    try testing.expectEqualStrings("undionly.kpxe", file.name.slice());
    try testing.expectEqual(.tftp, file.protocol);
    try testing.expectEqual(7, file.bytes);
    try testing.expectEqual(.done, file.outcome.?);
}

test "each file of a boot is in its report: loaded, left, requested again, and missing" {
    const site: *Site = try .create();
    defer site.destroy();
    site.open(1).kernel = .{ .fd = 3, .size = 100 };
    var link: Link = try .init(site);
    defer link.deinit();
    try link.request("kernel");
    // Nobody has proved the address yet.
    try testing.expectEqual(0, link.boot().transfers.count());
    try link.send(.{ .ack = 0 });
    const kernel = &link.boot().transfers.slots[0].?;
    try testing.expectEqual(null, kernel.outcome);
    site.io.now_us += 2 * std.time.us_per_s;
    link.port.tick(site.io.now_us);
    try link.send(.{ .err = .{ .code = .disk_full, .text = "no memory" } });
    try testing.expectEqual(.refused, kernel.outcome.?);
    try testing.expectEqual(1, kernel.retransmitted);
    try testing.expectEqual(0, kernel.bytes);
    try testing.expect(kernel.last_us - kernel.start_us >= 2 * std.time.us_per_s);
    try link.request("kernel");
    try link.send(.{ .ack = 0 });
    try link.send(.{ .ack = 1 });
    try testing.expectEqual(.done, kernel.outcome.?);
    try testing.expectEqual(100, kernel.bytes);
    try testing.expectEqual(2, kernel.requests);
    try link.request("grub/x86_64-efi/command.lst");
    const missing = link.boot().transfers.slots[1].?;
    try testing.expectEqualStrings("grub/x86_64-efi/command.lst", missing.name.slice());
    try testing.expectEqual(.not_found, missing.outcome.?);
    // A device that has its session loads nothing more.
    link.boot().stream_was_open = true;
    try link.request("another.lst");
    try testing.expectEqual(2, link.boot().transfers.count());
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
    try testing.expectEqual(null, link.boot().loader_steps.boot_command_us);
    try link.request("start");
    try testing.expectEqual(1, (try link.answer()).oack.tsize.?);
    try testing.expect(link.boot().loader_steps.boot_command_us != null);
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
        site.boots.table.setAddress(boot, device.ip, false);
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
    site.boots.table.setAddress(link.boot(), device.ip, false);
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

test "each packet of a download is counted once, and the last ones are known" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = link.boot();
    const last = &boot.last_packets;
    try link.request("kernel");
    const oack_size = site.io.sent.buffer[0].size;
    try testing.expectEqual(.tftp_read_request, last.from_device.?.packet.name);
    try testing.expectEqual(.tftp_oack, last.from_edge.?.packet.name);
    const loader = &boot.phases[@backingInt(core.boot.phase.Phase.loader)].?;
    const request_size = loader.traffic.bytes_in;
    for (0..3) |block| {
        try link.send(.{ .ack = @intCast(block) });
        try testing.expectEqual(.tftp_ack, last.from_device.?.packet.name);
        try testing.expectEqual(block, last.from_device.?.packet.number);
        try testing.expectEqual(@min(block + 1, 2), last.from_edge.?.packet.number);
        try testing.expectEqual(block + 1, site.io.tftp_acks);
        try testing.expectEqual(block + 2, loader.traffic.packets_in);
        try testing.expectEqual(request_size + 4 * (block + 1), loader.traffic.bytes_in);
    }
    try testing.expectEqual(3, loader.traffic.packets_out);
    try testing.expectEqual(oack_size + 2 * 4 + 1000, loader.traffic.bytes_out);
    try testing.expectEqual(0, loader.traffic.retries);
    try testing.expectEqual(null, boot.suspicion);
}

test "a file that is requested without options begins with its first block" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    var buffer: [128]u8 = undefined;
    const handle = link.boot().identity.handle;
    const path = try std.mem.print(&buffer, "b/{x:0>16}/undionly.kpxe", .{handle});
    try link.send(.{ .rrq = .{ .file_name = path, .options = .{} } });
    const sent = link.boot().last_packets.from_edge.?.packet;
    try testing.expectEqual(core.boot.packets.Packet{ .name = .tftp_data, .number = 1 }, sent);
    const nbp = link.boot().record(.nbp).?.traffic;
    try testing.expectEqual([_]u64{ 1, 1, 11 }, [_]u64{
        nbp.packets_in,
        nbp.packets_out,
        nbp.bytes_out,
    });
    // No transfer waits for these blocks yet.
    try testing.expectEqual(0, site.io.tftp_acks);
}

/// Lets time pass until blocks go out.
fn retransmission(link: *Link) !void {
    link.site.io.blocks = null;
    for (0..60) |_| {
        link.site.io.now_us += std.time.us_per_s / 4;
        link.port.tick(link.site.io.now_us);
        if (link.site.io.blocks != null) return;
    }
    return error.NothingIsSent;
}

test "a retransmission is no acknowledgement, and is counted as sent again" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    try link.request("kernel");
    try link.send(.{ .ack = 0 });
    const loader = &link.boot().phases[@backingInt(core.boot.phase.Phase.loader)].?;
    const before = loader.traffic;
    try retransmission(&link);
    try testing.expectEqual(1, site.io.tftp_acks);
    try testing.expectEqual(before.packets_in, loader.traffic.packets_in);
    try testing.expectEqual(before.bytes_in, loader.traffic.bytes_in);
    try testing.expectEqual(before.packets_out + 1, loader.traffic.packets_out);
    try link.send(.{ .err = .{ .code = .not_defined, .text = "x" } });
    try testing.expect(loader.traffic.retries > 0);
    try testing.expectEqual(.tftp_error, link.boot().last_packets.from_device.?.packet.name);
}

test "a device that starts its program without a last word has loaded it all the same" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    try link.request("kernel");
    for (0..2) |block| try link.send(.{ .ack = @intCast(block) });
    const traffic = &link.boot().phases[@backingInt(core.boot.phase.Phase.loader)].?.traffic;
    const packets_in = traffic.packets_in;
    for (0..60) |_| {
        site.io.now_us += std.time.us_per_s;
        link.port.tick(site.io.now_us);
    }
    try testing.expect(link.boot().loader_done.kernel);
    try testing.expectEqual(packets_in, traffic.packets_in);
    try testing.expectEqual(.tftp_ack, link.boot().last_packets.from_device.?.packet.name);
}

fn requestLarge(link: *Link, blksize: u16) !void {
    var buffer: [128]u8 = undefined;
    const handle = link.boot().identity.handle;
    const path = try std.mem.print(&buffer, "b/{x:0>16}/kernel", .{handle});
    try link.send(.{ .rrq = .{ .file_name = path, .options = .{ .blksize = blksize } } });
    try link.send(.{ .ack = 0 });
}

test "first blocks that are repeated while the peer repeats its word point to a narrow path" {
    const Case = struct { blksize: u16, sends: u8, acks: u8, is_narrow: bool };
    for ([_]Case{
        .{ .blksize = 1468, .sends = 4, .acks = 2, .is_narrow = true },
        .{ .blksize = 513, .sends = 4, .acks = 2, .is_narrow = true },
        .{ .blksize = 512, .sends = 4, .acks = 2, .is_narrow = false },
        .{ .blksize = 1468, .sends = 3, .acks = 2, .is_narrow = false },
        .{ .blksize = 1468, .sends = 4, .acks = 1, .is_narrow = false },
    }) |case| {
        const site: *Site = try .withVersion();
        defer site.destroy();
        site.io.versions.buffer[0].kernel = .{ .size = 100_000 };
        var link: Link = try .init(site);
        defer link.deinit();
        try requestLarge(&link, case.blksize);
        for (0..case.acks) |_| try link.send(.{ .ack = 0 });
        for (1..case.sends) |_| try retransmission(&link);
        const suspicion = link.boot().suspicion;
        try testing.expectEqual(case.is_narrow, suspicion != null);
        if (!case.is_narrow) continue;
        try testing.expectEqual(.path_mtu_black_hole, suspicion.?.cause);
        // The silence that follows says less.
        site.io.now_us += 3600 * std.time.us_per_s;
        link.port.tick(site.io.now_us);
        try testing.expectEqual(.path_mtu_black_hole, link.boot().suspicion.?.cause);
    }
}

test "a transfer that ends in silence is what the boot suffers from, whatever was suspected" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    try link.request("kernel");
    try link.send(.{ .ack = 0 });
    site.boots.apply(link.ref, site.io.now_us, .{ .suspected = .{ .cause = .store_read_error } });
    site.io.now_us += 3600 * std.time.us_per_s;
    link.port.tick(site.io.now_us);
    try testing.expectEqual(.tftp_timeout, link.boot().suspicion.?.cause);
}

test "a request that is refused is the last packet of its device, and so is its refusal of ours" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const last = &link.boot().last_packets;
    try link.request("gone.efi");
    try testing.expectEqual(.tftp_read_request, last.from_device.?.packet.name);
    for ([_]wire.ErrorCode{ .option_refused, .not_defined }) |code| {
        try link.request("undionly.kpxe");
        try link.send(.{ .err = .{ .code = code, .text = "no" } });
        try testing.expectEqual(.tftp_error, last.from_device.?.packet.name);
        try testing.expectEqual(@backingInt(code), last.from_device.?.packet.number);
    }
}

test "look-ups by address are limited from one second to the next" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    try link.send(.{ .rrq = .{ .file_name = "grub/x.lst", .options = .{} } });
    try testing.expectEqual(site.io.now_us + std.time.us_per_s, link.port.lookups_until_us);
    try testing.expectEqual(999, link.port.lookups_left);
    site.io.now_us += std.time.us_per_s - 1;
    try link.send(.{ .rrq = .{ .file_name = "grub/x.lst", .options = .{} } });
    try testing.expectEqual(998, link.port.lookups_left);
}

test "a device with a set of programs gets them by its handle, and by its address among several" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.devices[0].bootProgramSet = "other";
    try site.decide();
    var link: Link = try .init(site);
    defer link.deinit();
    site.boots.table.setAddress(link.boot(), device.ip, false);
    const catalogue = link.catalogue.tftpCatalogue();
    const Case = struct { sets: u8, by_handle: bool, has_own: bool };
    for ([_]Case{
        .{ .sets = 1, .by_handle = true, .has_own = true },
        .{ .sets = 1, .by_handle = false, .has_own = false },
        .{ .sets = 2, .by_handle = false, .has_own = true },
    }) |case| {
        site.io.sets_count = case.sets;
        const file = try catalogue.open(catalogue.context, &.{
            .name = "undionly.kpxe",
            .handle = if (case.by_handle) .{ .value = link.boot().identity.handle } else null,
            .peer = device,
            .is_confirmed = true,
        });
        const text = link.catalogue.memory(file.source).?;
        try testing.expectEqualStrings(if (case.has_own) "other program" else "program", text);
    }
}

test "files and texts are given out as long as there are places, and their places given back" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    try testing.expectEqual(5, link.catalogue.slots.len);
    const catalogue = link.catalogue.tftpCatalogue();
    var question: core.tftp.Server.FileQuery = .{
        .name = "kernel",
        .handle = .{ .value = link.boot().identity.handle },
        .peer = device,
        .is_confirmed = true,
    };
    for (0..5) |_| _ = try catalogue.open(catalogue.context, &question);
    try testing.expectError(error.Busy, catalogue.open(catalogue.context, &question));
    try testing.expectEqual(5, site.io.open_files);
    link.catalogue.close(0);
    question.name = "grub.cfg";
    const free = std.mem.asBytes(&link.catalogue.text_buffers[0].is_taken);
    try testing.expectEqual(0, free[0]);
    const text = try catalogue.open(catalogue.context, &question);
    try testing.expect(link.catalogue.text_buffers[0].is_taken);
    link.catalogue.close(text.source);
    try testing.expect(!link.catalogue.text_buffers[0].is_taken);
    question.name = "kernel";
    const first = try catalogue.open(catalogue.context, &question);
    try testing.expectEqual(0, first.source);
    var other: Link = .{
        .site = site,
        .catalogue = try gpa.create(Catalogue),
        .port = undefined,
        .ref = link.ref,
    };
    defer gpa.destroy(other.catalogue);
    other.catalogue.* = try .init(gpa, &site.boots, own, 1);
    const several = other.catalogue.tftpCatalogue();
    for (0..2) |_| _ = try several.open(several.context, &question);
    try testing.expectEqual(7, site.io.open_files);
    other.catalogue.deinit(gpa);
    try testing.expectEqual(5, site.io.open_files);
}

test "a catalogue that cannot have all of its memory takes none" {
    const Make = struct {
        fn make(allocator: std.mem.Allocator, site: *Site) !void {
            var catalogue: Catalogue = try .init(allocator, &site.boots, own, 2);
            catalogue.deinit(allocator);
        }
    };
    const site: *Site = try .create();
    defer site.destroy();
    try testing.checkAllAllocationFailures(gpa, Make.make, .{site});
}

test "the answer to a menu's choice waits until the choice is kept, and a menu for nothing" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.open(2);
    try site.addMenu();
    var link: Link = try .init(site);
    defer link.deinit();
    const menu = site.boots.policy.menuOf(fixture.macOf(1), site.io.unix_ms).?;
    var name: [64]u8 = undefined;
    const chosen = try std.mem.print(&name, "menu-{x:0>8}-{d}.cfg", .{ menu.mark(), 1 });
    for ([_][]const u8{ "grub.cfg", chosen }, [_]bool{ false, true }) |asked, is_promise| {
        site.io.sent_after = null;
        site.io.blocks = null;
        try link.request(asked);
        _ = try link.answer();
        try link.send(.{ .ack = 0 });
        try testing.expectEqual(is_promise, site.io.blocks == null);
        if (!is_promise) continue;
        try testing.expectEqual(.written, site.io.sent_after.?);
        const data = (try link.answer()).data;
        try testing.expectEqual(1, data.block);
        try testing.expect(std.mem.find(u8, data.bytes, "quiet") != null);
        try testing.expectEqualStrings("two", link.boot().menu_entry.slice());
    }
}
