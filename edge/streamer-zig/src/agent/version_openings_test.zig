//! Tests of version_openings.zig: what devices hear while a thread opens their version, and what
//! becomes of them when it has, or could not.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const agent_test = @import("agent_test.zig");
const http_response = @import("response.zig");
const TestIo = @import("io_test.zig");
const Site = agent_test.Site;
const HttpPaths = @import("http_paths.zig").HttpPaths(TestIo);
const testing = std.testing;

const peer: base.Ip4 = .init(10, 77, 0, 10);

fn ask(site: *Site, boot: *const core.boot.Boot, name: []const u8) !http_response.Response {
    var paths: HttpPaths = .{ .boots = &site.boots, .own = agent_test.own };
    var buffer: [128]u8 = undefined;
    var text: [http_response.text_size_max]u8 = undefined;
    return paths.respond(peer, &.{
        .method = .get,
        .target = try std.mem.print(&buffer, "/b/{x:0>16}/{s}", .{ boot.identity.handle, name }),
        .range = null,
        .keep_alive = true,
        .body = "",
        .size = 1,
    }, &text);
}

test "a request that comes while a thread opens the version waits, and nothing has failed" {
    const site: *Site = try .create();
    defer site.destroy();
    site.io.opens_late = true;
    const boot = site.boot(try site.begin(1));
    try testing.expectEqual(agent_test.uuid(1), site.io.opening.?);
    for ([_][]const u8{ "boot.ipxe", "kernel", "disk" }) |name| {
        const response = try ask(site, boot, name);
        try testing.expect(response.waits_for_version);
    }
    try testing.expect(!boot.isOver());
    try testing.expectEqual(null, boot.suspicion);
    _ = site.open(1);
    site.boots.onVersionOpened(site.io.now_us, agent_test.uuid(1), null);
    const script = try ask(site, boot, "boot.ipxe");
    try testing.expectEqual(200, script.status);
    try testing.expect(!script.waits_for_version);
}

test "a version that could not be opened fails the boots that ask, and is tried again later" {
    const site: *Site = try .create();
    defer site.destroy();
    site.io.opens_late = true;
    const boot = site.boot(try site.begin(1));
    const id = agent_test.uuid(1);
    site.boots.onVersionOpened(site.io.now_us, id, site.io.problem);
    try testing.expect(boot.suspicion != null);
    try testing.expectEqual(1, site.io.opened);
    const refusal = try ask(site, boot, "boot.ipxe");
    try testing.expect(!refusal.waits_for_version);
    try testing.expectEqual(.version_missing, boot.outcome.?.failed.cause);
    try testing.expectEqual(1, site.io.opened);
    site.io.now_us += 11 * std.time.us_per_s;
    site.forget(1);
    const later = site.boot(try site.begin(1));
    try testing.expectEqual(2, site.io.opened);
    try testing.expect((try ask(site, later, "boot.ipxe")).waits_for_version);
}

test "a new desired state forgets what was found out" {
    const site: *Site = try .create();
    defer site.destroy();
    site.io.opens_late = true;
    const boot = site.boot(try site.begin(1));
    site.boots.onVersionOpened(site.io.now_us, agent_test.uuid(1), site.io.problem);
    site.boots.openings.onState();
    try testing.expect(site.boots.awaitsVersion(boot));
}

test "versions of the desired state are opened one after the other before anybody asks" {
    const site: *Site = try .create();
    defer site.destroy();
    const io = &site.io;
    io.opens_late = true;
    site.boots.tick(io.now_us);
    for (1..4) |number| {
        site.boots.tick(io.now_us);
        const id = agent_test.uuid(@intCast(number));
        try testing.expectEqual(id, io.opening.?);
        try testing.expectEqual(number, io.opened);
        io.opening = null;
        if (number != 2) _ = site.open(@intCast(number));
        site.boots.onVersionOpened(io.now_us, id, if (number == 2) io.problem else null);
    }
    try testing.expectEqual(null, io.opening);
    // No boot needs what could not be opened.
    try testing.expectEqual(0, io.problems);
    site.vdisks[0].versions = site.versions[1..2];
    site.devices[0].versionId = agent_test.uuid(2);
    try testing.expect(site.boots.awaitsVersion(site.boot(try site.begin(1))));
    io.opening = null;
    io.now_us += 61 * std.time.us_per_s;
    site.boots.tick(io.now_us);
    try testing.expectEqual(agent_test.uuid(2), io.opening.?);
}

test "a problem of a version that is opened ahead counts for who asks in the meantime" {
    const site: *Site = try .create();
    defer site.destroy();
    const io = &site.io;
    io.opens_late = true;
    site.boots.tick(io.now_us);
    const boot = site.boot(try site.begin(1));
    try testing.expect(site.boots.awaitsVersion(boot));
    site.boots.onVersionOpened(io.now_us, agent_test.uuid(1), io.problem);
    try testing.expectEqual(1, io.problems);
    try testing.expect(!site.boots.awaitsVersion(boot));
    try testing.expectEqual(.version_missing, site.boots.blockerOf(boot).?.cause);
}

test "what a boot has suffered since explains more than a version that could not be opened" {
    const site: *Site = try .create();
    defer site.destroy();
    site.io.opens_late = true;
    const ref = try site.begin(1);
    const why: core.boot.Event = .{ .suspected = .{ .cause = .nbp_not_found, .text = .empty } };
    site.boots.apply(ref, site.io.now_us, why);
    site.boots.onVersionOpened(site.io.now_us, agent_test.uuid(1), site.io.problem);
    try testing.expectEqual(.nbp_not_found, site.boot(ref).suspicion.?.cause);
}

test "a boot of a private image waits until a thread has found out its version" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("private");
    const io = &site.io;
    io.reads_images_late = true;
    _ = site.open(2);
    for ([_]?u8{ null, 2 }) |found| {
        site.forget(1);
        const boot = site.boot(try site.begin(1));
        try testing.expect((try ask(site, boot, "boot.ipxe")).waits_for_version);
        const other = agent_test.uuid(99);
        site.boots.onImageRead(io.now_us, other, agent_test.uuid(2));
        try testing.expect((try ask(site, boot, "boot.ipxe")).waits_for_version);
        const version: ?base.Uuid = if (found) |number| agent_test.uuid(number) else null;
        site.boots.onImageRead(io.now_us, io.image.?, version);
        const response = try ask(site, boot, "boot.ipxe");
        try testing.expectEqual(200, response.status);
        try testing.expectEqual(version orelse agent_test.uuid(1), boot.assignment.version_id);
    }
}

test "an edge that restarts while a thread reads a private image has it read again" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("private");
    const io = &site.io;
    io.reads_images_late = true;
    _ = site.open(2);
    const boot = site.boot(try site.begin(1));
    const name = io.image.?;
    io.image = null;
    boot.onRestart(io.now_us);
    try testing.expect((try ask(site, boot, "boot.ipxe")).waits_for_version);
    try testing.expectEqual(name, io.image.?);
    // It is read once, however often the device asks.
    io.image = null;
    try testing.expect((try ask(site, boot, "boot.ipxe")).waits_for_version);
    try testing.expectEqual(null, io.image);
    site.boots.onImageRead(io.now_us, name, agent_test.uuid(2));
    try testing.expectEqual(200, (try ask(site, boot, "boot.ipxe")).status);
    try testing.expectEqual(agent_test.uuid(2), boot.assignment.version_id);
}
