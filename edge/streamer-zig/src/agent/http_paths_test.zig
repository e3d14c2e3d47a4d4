//! Tests of http_paths.zig and of the scripts that it serves: what a path answers, and what that
//! does to a boot.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const http_response = @import("response.zig");
const TestIo = @import("io_test.zig");
const fixture = @import("agent_test.zig");
const testing = std.testing;
const Site = fixture.Site;
const macOf = fixture.macOf;
const uuid = fixture.uuid;
const HttpPaths = @import("http_paths.zig").HttpPaths(TestIo);
const Response = http_response.Response;

const peer: base.Ip4 = .init(10, 77, 0, 10);

const own = fixture.own;

const Door = struct {
    paths: HttpPaths,
    text: [http_response.text_size_max]u8 = undefined,

    fn init(site: *Site) Door {
        return .{ .paths = .{ .boots = &site.boots, .own = own } };
    }

    fn ask(door: *Door, method: anytype, target: []const u8, body: []const u8) Response {
        return door.paths.respond(peer, &.{
            .method = method,
            .target = target,
            .range = null,
            .keep_alive = true,
            .body = body,
            .size = 1,
        }, &door.text);
    }

    fn get(door: *Door, target: []const u8) Response {
        return door.ask(.get, target, "");
    }

    /// Asks for a path below the boot's handle.
    fn ofBoot(door: *Door, boot: *const core.boot.Boot, name: []const u8) !Response {
        var buffer: [128]u8 = undefined;
        const handle = boot.identity.handle;
        return door.get(try std.mem.print(&buffer, "/b/{x:0>16}/{s}", .{ handle, name }));
    }

    fn expectText(door: *const Door, response: Response, part: []const u8) !void {
        const text = door.text[0..response.body.text];
        errdefer std.debug.print("{s}\n", .{text});
        try testing.expect(std.mem.find(u8, text, part) != null);
    }
};

test "paths that belong to no boot" {
    const site: *Site = try .create();
    defer site.destroy();
    var door: Door = .init(site);
    const health = door.get("/healthz");
    try testing.expectEqual(200, health.status);
    try door.expectText(health, "ok\n");
    site.io.is_store_short = true;
    const degraded = door.get("/healthz");
    try testing.expectEqual(200, degraded.status);
    try door.expectText(degraded, "degraded: store_low_space\n");
    site.io.is_store_short = false;
    try door.expectText(door.get("/boot.ipxe?x"), "http://10.77.0.2:6980");
    try testing.expectEqual(404, door.get("/nothing").status);
    try testing.expectEqual(404, door.get("/m/52:54:00:12:34:56/other").status);
    try testing.expectEqual(404, door.get("/m/00:00:00:00:00:00/boot.ipxe").status);
    try testing.expectEqual(404, door.get("/m/nonsense/boot.ipxe").status);
    const program = door.get("/undionly.kpxe.efi");
    try testing.expectEqualStrings("application/efi", program.content_type);
    try testing.expectEqualStrings("program", program.body.memory);
    const plain = door.get("/undionly.kpxe");
    try testing.expectEqualStrings("application/octet-stream", plain.content_type);
    try testing.expectEqual(.nbp, program.tag.what);
    try testing.expectEqual(null, program.tag.boot);
}

test "POST is for a device's word and nothing else, and its word is for POST" {
    const site: *Site = try .create();
    defer site.destroy();
    var door: Door = .init(site);
    const posted = door.ask(.post, "/boot.ipxe", "");
    try testing.expectEqual(405, posted.status);
    try testing.expectEqualStrings("GET, HEAD", posted.allow);
    const got = door.get("/ready");
    try testing.expectEqual(405, got.status);
    try testing.expectEqualStrings("POST", got.allow);
}

test "the boot of a trial has its settings on the kernel's line, and the next one has its device's" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.state.tunings = &.{ &.{ "codec=off", "read-limit=4k", "stream=sealed" }, &.{"codec=lz4"} };
    site.devices[0].tuning = 1;
    site.state.trials = &.{.{
        .id = uuid(70),
        .deviceId = uuid(11),
        .tuning = 0,
        .untilUnixMs = site.io.unix_ms + 1000,
    }};
    site.boots.clear = true;
    try site.decide();
    var door: Door = .init(site);
    const script = door.get("/m/02:bf:00:00:00:01/boot.ipxe");
    try door.expectText(script, " bootfarm.codec=off bootfarm.read-limit=4k ${bootfarm_words}");
    const boot = site.boot(script.tag.boot.?);
    try testing.expect(boot.assignment.trial.?.eql(uuid(70)));
    // It keeps them, whatever the state says later.
    site.state.trials = &.{};
    try site.decide();
    try door.expectText(try door.ofBoot(boot, "boot.ipxe"), " bootfarm.codec=off ");
    site.boots.apply(script.tag.boot.?, site.io.now_us, .{
        .failed = .{ .cause = .root_not_found },
    });
    const next = door.get("/m/02:bf:00:00:00:01/boot.ipxe");
    try door.expectText(next, " bootfarm.codec=lz4 bootfarm.stream=clear ${bootfarm_words}");
    try testing.expectEqual(null, site.boot(next.tag.boot.?).assignment.trial);
}

test "a script by MAC address begins a boot, of an unknown device it is recorded" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    const script = door.get("/m/02:bf:00:00:00:01/boot.ipxe");
    try testing.expectEqual(200, script.status);
    try testing.expectEqual(.script, script.tag.what);
    try door.expectText(script, "kernel");
    const boot = site.boot(script.tag.boot.?);
    try testing.expect(boot.identity.mac.eql(macOf(1)));
    try testing.expect(boot.facts.ip.?.eql(peer));
    try testing.expectEqual(404, door.get("/m/02:bf:00:00:00:09/boot.ipxe").status);
    site.boots.tick(site.io.now_us + std.time.us_per_hour);
    try testing.expectEqual(1, site.io.discovered);
}

test "a full table answers with 503" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.state.unknownDevices = .boot;
    try site.decide();
    for (11..15) |number| _ = try site.begin(@intCast(number));
    var door: Door = .init(site);
    try testing.expectEqual(503, door.get("/m/02:bf:00:00:00:01/boot.ipxe").status);
}

test "a boot has its kernel, initrd and disk, and a missing file of its own ends it" {
    const site: *Site = try .create();
    defer site.destroy();
    const version = site.open(1);
    version.initrd = .{ .fd = 4, .size = 500 };
    var door: Door = .init(site);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const kernel = try door.ofBoot(boot, "kernel");
    try testing.expectEqual(1000, kernel.body.file.size);
    try testing.expectEqual(.kernel, kernel.tag.what);
    try testing.expectEqual(ref, kernel.tag.boot.?);
    try testing.expectEqual(4, (try door.ofBoot(boot, "initrd")).body.file.fd);
    // Loaders look for files that need not be there.
    try testing.expectEqual(404, (try door.ofBoot(boot, "splash.png")).status);
    try testing.expectEqual(.file_not_found, boot.suspicion.?.cause);
    try testing.expectEqual(404, boot.last_packets.from_edge.?.packet.number);
    try testing.expect(!boot.isOver());
    version.initrd = null;
    try testing.expectEqual(404, (try door.ofBoot(boot, "initrd")).status);
    try testing.expectEqual(.file_not_found, boot.outcome.?.failed.cause);
    try testing.expectEqualStrings("initrd", boot.outcome.?.failed.text.slice());
}

test "a disk is served by HTTP to its own boot alone, and only if it has no kernel" {
    const site: *Site = try .create();
    defer site.destroy();
    const version = site.open(1);
    var door: Door = .init(site);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    site.boots.table.setAddress(boot, peer, false);
    try testing.expectEqual(404, (try door.ofBoot(boot, "disk")).status);
    try testing.expect(!boot.isOver());
    version.kernel = null;
    const disk = try door.ofBoot(boot, "disk");
    try testing.expectEqual(1 << 20, disk.body.disk.size);
    try testing.expect(disk.body.disk.version_id.eql(uuid(1)));
    version.disk.plain = .{ .fd = 5 };
    try testing.expectEqual(5, (try door.ofBoot(boot, "disk")).body.file.fd);
    site.boots.table.setAddress(boot, .init(10, 77, 0, 11), false);
    const refusal = try door.ofBoot(boot, "disk");
    try testing.expectEqual(403, refusal.status);
    try door.expectText(refusal, "the device that boots it");
    // It was asked for before its device had an address.
    boot.facts.ip = null;
    try testing.expectEqual(403, (try door.ofBoot(boot, "disk")).status);
    try testing.expectEqual(null, boot.facts.ip);
    site.boots.table.setAddress(boot, peer, false);
    site.boots.apply(ref, site.io.now_us, .{ .ready = .http });
    try testing.expectEqual(200, (try door.ofBoot(boot, "disk")).status);
    const later = try site.begin(1);
    const running = site.boots.get(ref) orelse return;
    running.outcome = .superseded;
    site.boots.table.setAddress(running, peer, false);
    try testing.expectEqual(409, (try door.ofBoot(running, "disk")).status);
    try testing.expect(!site.boot(later).isOver());
}

test "a failure or a missing file that another address reports does not end a boot" {
    const site: *Site = try .create();
    defer site.destroy();
    const version = site.open(1);
    var door: Door = .init(site);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    var buffer: [64]u8 = undefined;
    const handle = boot.identity.handle;
    const failed = try std.mem.print(&buffer, "/b/{x:0>16}/failed", .{handle});
    site.boots.table.setAddress(boot, .init(10, 77, 0, 11), false);
    try testing.expectEqual(204, door.ask(.post, failed, "x it broke").status);
    try testing.expect(!boot.isOver());
    try testing.expectEqualStrings("x: it broke", boot.suspicion.?.text.slice());
    version.initrd = null;
    try testing.expectEqual(404, (try door.ofBoot(boot, "initrd")).status);
    try testing.expect(!boot.isOver());
    site.boots.table.setAddress(boot, peer, false);
    try testing.expectEqual(204, door.ask(.post, failed, "x it broke").status);
    try testing.expectEqual(.failed, std.meta.activeTag(boot.outcome.?));
}

test "a bare name belongs to the boot of the address, and suspects nothing" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    const ref = try site.begin(1);
    site.boots.learnPeer(ref, peer);
    try testing.expectEqual(ref, door.get("/undionly.kpxe").tag.boot.?);
    try testing.expectEqual(404, door.get("/splash.png").status);
    try testing.expectEqual(null, site.boot(ref).suspicion);
}

test "what hinders a boot is in its script, and ends it" {
    const site: *Site = try .create();
    defer site.destroy();
    var door: Door = .init(site);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    try door.expectText(try door.ofBoot(boot, "boot.ipxe"), "the version is unreadable");
    try testing.expectEqual(.version_missing, boot.outcome.?.failed.cause);
    try testing.expectEqual(.loader, boot.outcome.?.failed.phase);
}

test "a device's word ends its boot once, by handle or by its only boot's address" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    try testing.expectEqual(409, door.ask(.post, "/ready", "").status);
    try testing.expectEqual(404, door.ask(.post, "/b/00000000000000aa/ready", "").status);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    site.boots.table.setAddress(boot, peer, false);
    try testing.expectEqual(400, door.ask(.post, "/failed", "").status);
    try testing.expect(!boot.isOver());
    try testing.expectEqual(204, door.ask(.post, "/ready", "").status);
    try testing.expectEqual(.ready, std.meta.activeTag(boot.outcome.?));
    try testing.expectEqual(204, boot.last_packets.from_edge.?.packet.number);
    var buffer: [64]u8 = undefined;
    const handle = boot.identity.handle;
    const ready = try std.mem.print(&buffer, "/b/{x:0>16}/ready", .{handle});
    try testing.expectEqual(204, door.ask(.post, ready, "").status);
    var other: [64]u8 = undefined;
    const failed = try std.mem.print(&other, "/b/{x:0>16}/failed", .{handle});
    const contrary = door.ask(.post, failed, "x it broke");
    try testing.expectEqual(409, contrary.status);
    try door.expectText(contrary, "it became ready");
}

test "a device's failure is believed, and one of two at an address has to name itself" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.state.unknownDevices = .boot;
    try site.decide();
    var door: Door = .init(site);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    site.boots.table.setAddress(boot, peer, false);
    const neighbour = try site.begin(11);
    site.boots.table.setAddress(site.boot(neighbour), peer, false);
    const ambiguous = door.ask(.post, "/failed", "x it broke");
    try testing.expectEqual(409, ambiguous.status);
    try door.expectText(ambiguous, "Several boots");
    site.boots.supersede(site.io.now_us, neighbour);
    try testing.expectEqual(204, door.ask(.post, "/failed", "x it broke").status);
    try testing.expectEqualStrings("x: it broke", boot.outcome.?.failed.text.slice());
}

test "downloads move a boot through its phases" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const now_us = site.io.now_us;
    const Step = struct { what: http_response.Tag.What, begins: bool, finished: bool };
    const Traffic = core.boot.phase.Traffic;
    const traffic: Traffic = .{ .bytes_out = 100, .packets_out = 1, .packets_in = 1 };
    const phases = [_]core.boot.phase.Phase{ .nbp, .loader, .loader, .loader, .stage1 };
    for ([_]Step{
        .{ .what = .nbp, .begins = true, .finished = false },
        .{ .what = .nbp, .begins = false, .finished = true },
        .{ .what = .script, .begins = true, .finished = true },
        .{ .what = .kernel, .begins = true, .finished = true },
        .{ .what = .disk, .begins = true, .finished = false },
    }, phases, 1..) |step, phase, number| {
        door.paths.progress(.{ .boot = ref, .what = step.what }, .{
            .traffic = traffic,
            .begins = step.begins,
            .finished = step.finished,
            .at_us = now_us + number,
            .body_size = 100,
        });
        try testing.expectEqual(phase, boot.current().?);
    }
    try testing.expectEqual(200, boot.record(.nbp).?.traffic.bytes_out);
    try testing.expectEqual(200, boot.record(.loader).?.traffic.bytes_out);
    try testing.expectEqual(100, boot.record(.stage1).?.traffic.bytes_out);
    try testing.expect(boot.loader_done.kernel);
    try testing.expect(boot.files_begun);
    try testing.expectEqual(1, boot.record(.stage1).?.reads);
}

test "the file before the kernel's start is answered at once and measured" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    const boot = site.boot(try site.begin(1));
    var buffer: [64]u8 = undefined;
    const path = try std.mem.print(&buffer, "/b/{x:0>16}/start", .{boot.identity.handle});
    const response = door.ask(.get, path, "");
    try testing.expectEqual(200, response.status);
    try testing.expectEqual(1, response.body.size());
    try testing.expect(response.tag.isMeasured());
    const at_us = site.io.now_us + 7;
    door.paths.progress(response.tag, .{
        .traffic = .{ .bytes_out = 1, .packets_out = 1 },
        .begins = true,
        .at_us = at_us,
        .body_size = 1,
    });
    try testing.expectEqual(at_us - boot.started_us, boot.loader_steps.boot_command_us.?);
    try testing.expect(!boot.files_begun);
    try testing.expectEqual(404, door.ask(.get, "/start", "").status);
}

test "each file that a device loads by HTTP is in its boot's report" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    var buffer: [64]u8 = undefined;
    const path = try std.mem.print(&buffer, "/b/{x:0>16}/kernel", .{boot.identity.handle});
    const tag = door.ask(.get, path, "").tag;
    try testing.expectEqual(0, tag.file);
    door.paths.progress(tag, .{
        .traffic = .{ .bytes_out = 60, .retries = 2 },
        .begins = true,
        .at_us = site.io.now_us + 5,
        .body_size = 100,
    });
    const kernel = &boot.transfers.slots[0].?;
    try testing.expectEqualStrings("kernel", kernel.name.slice());
    try testing.expectEqual(.http, kernel.protocol);
    try testing.expectEqual(null, kernel.outcome);
    door.paths.progress(tag, .{
        .traffic = .{ .bytes_out = 40 },
        .finished = true,
        .at_us = site.io.now_us + 90,
        .body_size = 100,
    });
    try testing.expectEqual(.done, kernel.outcome.?);
    try testing.expectEqual(100, kernel.bytes);
    try testing.expectEqual(2, kernel.retransmitted);
    try testing.expectEqual(90, kernel.last_us - kernel.start_us);
    const absent = try std.mem.print(&buffer, "/b/{x:0>16}/no.cfg", .{boot.identity.handle});
    try testing.expectEqual(404, door.ask(.get, absent, "").status);
    try testing.expectEqual(.not_found, boot.transfers.slots[1].?.outcome.?);
}

test "an empty answer ends no download" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    const ref = try site.begin(1);
    door.paths.progress(.{ .boot = ref, .what = .nbp }, .{
        .traffic = .{},
        .begins = true,
        .finished = true,
        .at_us = site.io.now_us,
        .body_size = 0,
    });
    try testing.expectEqual(.nbp, site.boot(ref).current().?);
    try testing.expectEqual(null, site.boot(ref).last_packets.from_edge);
    door.paths.progress(.{ .boot = ref, .what = .disk }, .{
        .traffic = .{},
        .begins = true,
        .finished = true,
        .at_us = site.io.now_us,
        .body_size = 0,
    });
    try testing.expectEqual(null, site.boot(ref).record(.stage1));
}

test "a boot's file is answered with 200, learns its peer, and shows itself as a request" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    const boot = site.boot(try site.begin(1));
    const kernel = try door.ofBoot(boot, "kernel");
    try testing.expectEqual(200, kernel.status);
    try testing.expect(boot.facts.ip.?.eql(peer));
    try testing.expectEqual(200, (try door.ofBoot(boot, "undionly.kpxe")).status);
    _ = try door.ofBoot(boot, "splash.png");
    try testing.expectEqual(.http_request, boot.last_packets.from_device.?.packet.name);
    boot.last_packets = .{};
    // A single byte is a body as well.
    door.paths.progress(.{ .boot = kernel.tag.boot, .what = .kernel }, .{
        .traffic = .{ .bytes_out = 1 },
        .begins = true,
        .finished = true,
        .at_us = site.io.now_us,
        .body_size = 1,
    });
    try testing.expect(boot.loader_done.kernel);
    const from_device = boot.last_packets.from_device.?.packet;
    try testing.expectEqual(
        core.boot.packets.Packet.http(.http_request, .kernel),
        from_device,
    );
    const from_edge = boot.last_packets.from_edge.?.packet;
    try testing.expectEqual(core.boot.packets.Packet.http(.http_bytes, .kernel), from_edge);
    // Later progress of the same answer is no new request.
    boot.last_packets = .{};
    door.paths.progress(.{ .boot = kernel.tag.boot, .what = .disk }, .{
        .traffic = .{},
        .begins = false,
        .at_us = site.io.now_us,
        .body_size = 1,
    });
    try testing.expectEqual(null, boot.last_packets.from_device);
    try testing.expectEqual(null, boot.record(.stage1));
    door.paths.progress(.{ .boot = kernel.tag.boot, .what = .disk }, .{
        .traffic = .{},
        .begins = true,
        .at_us = site.io.now_us,
        .body_size = 1,
    });
    try testing.expectEqual(1, boot.record(.stage1).?.reads);
}

test "GRUB by HTTP gets its configuration, and other names none" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    const boot = site.boot(try site.begin(1));
    const config = try door.ofBoot(boot, "grub/grub.cfg");
    try testing.expectEqual(200, config.status);
    try testing.expectEqual(.script, config.tag.what);
    try door.expectText(config, "quiet");
    try testing.expectEqual(404, (try door.ofBoot(boot, "grub/other.cfg")).status);
}

test "a menu's choice is in the query of its script" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.open(2);
    try site.addMenu();
    var door: Door = .init(site);
    const boot = site.boot(try site.begin(1));
    const menu = site.boots.policy.menuOf(macOf(1), site.io.unix_ms).?;
    const answer: core.loader.menu.Answer = .{ .mark = menu.mark(), .entry = 1 };
    var name: [64]u8 = undefined;
    // A menu promises nothing; the answer to a choice waits for the choice to be kept.
    for ([_][]const u8{ "boot.ipxe", "grub/grub.cfg" }) |asked|
        try testing.expect(!(try door.ofBoot(boot, asked)).after_journal);
    const text = try std.mem.print(&name, "boot.ipxe?{f}", .{answer});
    try testing.expect((try door.ofBoot(boot, text)).after_journal);
    try testing.expectEqualStrings("two", boot.menu_entry.slice());
    const config = try std.mem.print(&name, "menu-{x:0>8}-{d}.cfg", .{ menu.mark(), 1 });
    try testing.expect((try door.ofBoot(boot, config)).after_journal);
}

test "a device's word is its last packet, and is answered by how the boot ended" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.setCache("device_ram_local_disk", .stop);
    var door: Door = .init(site);
    const Case = struct { []const u8, []const u8, u16 };
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    site.boots.table.setAddress(boot, peer, false);
    var buffer: [64]u8 = undefined;
    const handle = boot.identity.handle;
    const failed = try std.mem.print(&buffer, "/b/{x:0>16}/failed", .{handle});
    var other: [64]u8 = undefined;
    const ready = try std.mem.print(&other, "/b/{x:0>16}/ready", .{handle});
    for ([_]Case{
        .{ failed, "no_root x", 204 },
        .{ failed, "no_root x", 204 },
        .{ ready, "", 409 },
    }) |case| try testing.expectEqual(case[2], door.ask(.post, case[0], case[1]).status);
    try testing.expectEqual(
        core.boot.packets.Packet.http(.http_request, .word),
        boot.last_packets.from_device.?.packet,
    );
    for ([_]core.boot.phase.OutcomeKind{ .silent, .local_disk, .superseded }) |kind| {
        boot.outcome = switch (kind) {
            .silent => .{ .silent = .dhcp },
            .local_disk => .local_disk,
            else => .superseded,
        };
        for ([_][]const u8{ ready, failed }) |path|
            try testing.expectEqual(409, door.ask(.post, path, "no_root x").status);
    }
}

test "a running device that lost its own disk is believed, with any other failure it is not" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.setCache("device_ram_local_disk", .stop);
    var door: Door = .init(site);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    _ = site.boots.takeReport(site.io.now_us, &.{
        .boot_id = boot.identity.id,
        .session_id = 1,
        .request_id = 1,
        .report = .{ .uptime_us = 1 },
    });
    site.boots.apply(ref, site.io.now_us, .{ .ready = .http });
    site.boots.table.setAddress(boot, peer, false);
    var buffer: [64]u8 = undefined;
    const failed = try std.mem.print(&buffer, "/b/{x:0>16}/failed", .{boot.identity.handle});
    _ = door.ask(.post, failed, "no_root x");
    try testing.expectEqual(.ok, boot.guest.?.cache_status.state);
    _ = door.ask(.post, failed, "cache_lost x");
    try testing.expectEqual(.lost, boot.guest.?.cache_status.state);
}

test "an answer's size is that of its body, and it is measured where it moves a boot" {
    try testing.expectEqual(0, http_response.Body.size(.none));
    try testing.expectEqual(7, http_response.Body.size(.{ .text = 7 }));
    try testing.expectEqual(3, http_response.Body.size(.{ .memory = "abc" }));
    for (std.enums.values(http_response.Tag.What)) |what| {
        const moves = what != .other and what != .disk;
        const ref: core.boot.Table.Ref = .{ .index = 0, .generation = 0 };
        const tag: http_response.Tag = .{ .boot = ref, .what = what };
        try testing.expectEqual(moves, tag.isMeasured());
        try testing.expect(!(http_response.Tag{ .what = what }).isMeasured());
    }
}

test "a device that says by its handle that it is ready tells its address" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    const boot = site.boot(try site.begin(1));
    var buffer: [64]u8 = undefined;
    const ready = try std.mem.print(&buffer, "/b/{x:0>16}/ready", .{boot.identity.handle});
    try testing.expectEqual(204, door.ask(.post, ready, "").status);
    try testing.expect(boot.facts.ip.?.eql(peer));
}

test "a script goes to the machine with the device's MAC address alone" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    site.boots.trusted = &.{};
    const by_mac = "/m/02:bf:00:00:00:01/boot.ipxe";
    for ([_]?base.Mac{ null, macOf(9) }, [_][]const u8{ "nothing shows", "another MAC" }) |
        neighbour,
        words,
    | {
        site.io.neighbour_mac = neighbour;
        const refusal = door.get(by_mac);
        try testing.expectEqual(403, refusal.status);
        try door.expectText(refusal, words);
        try testing.expectEqual(null, site.boots.table.findByMac(macOf(1)));
    }
    // Nor is an unknown device discovered on somebody's word.
    try testing.expectEqual(403, door.get("/m/02:bf:00:00:00:08/boot.ipxe").status);
    site.boots.tick(site.io.now_us + std.time.us_per_hour);
    try testing.expectEqual(0, site.io.discovered);
    try testing.expectEqual(3, site.boots.ignored.get(.device_unconfirmed));
    site.io.neighbour_mac = macOf(1);
    const script = door.get(by_mac);
    try testing.expectEqual(200, script.status);
    const boot = site.boot(script.tag.boot.?);
    try testing.expect(boot.isAt(peer));
    // The kernel may forget a neighbour.
    site.io.neighbour_mac = null;
    try testing.expectEqual(200, (try door.ofBoot(boot, "boot.ipxe")).status);
    site.io.neighbour_mac = macOf(9);
    for ([_][]const u8{ "boot.ipxe", "grub.cfg" }) |name|
        try testing.expectEqual(403, (try door.ofBoot(boot, name)).status);
    boot.facts = .{};
    for ([_]?base.Mac{ null, macOf(9) }) |neighbour| {
        site.io.neighbour_mac = neighbour;
        try testing.expectEqual(403, (try door.ofBoot(boot, "boot.ipxe")).status);
        try testing.expectEqual(404, (try door.ofBoot(boot, "disk")).status);
    }
    // The stranger's address does not become the boot's.
    try testing.expectEqual(null, boot.facts.ip);
    try testing.expect(!boot.isOver());
}

test "whoever is not the boot's device calls it neither ready nor failed" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var door: Door = .init(site);
    site.boots.trusted = &.{};
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    var buffer: [64]u8 = undefined;
    const ready = try std.mem.print(&buffer, "/b/{x:0>16}/ready", .{boot.identity.handle});
    // A packet has said that this is the device's address.
    site.boots.learnAddress(macOf(1), peer);
    try testing.expect(boot.facts.ip.?.eql(peer));
    try testing.expectEqual(403, door.ask(.post, ready, "").status);
    try testing.expectEqual(403, door.ask(.post, "/ready", "").status);
    try testing.expectEqual(204, door.ask(.post, "/failed", "E42 no").status);
    try testing.expect(!boot.isOver());
    site.io.neighbour_mac = macOf(1);
    try testing.expectEqual(204, door.ask(.post, "/ready", "").status);
    try testing.expectEqual(.ready, std.meta.activeTag(boot.outcome.?));
    // What DHCP says later does not displace what is proven.
    site.io.neighbour_mac = null;
    site.boots.learnAddress(macOf(1), .init(10, 77, 0, 99));
    try testing.expect(boot.isAt(peer));
}
