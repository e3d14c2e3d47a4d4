//! The life of a write layer: opened by a thread while a HELLO waits, and closed by one.

const std = @import("std");
const agent_test = @import("agent_test.zig");
const core = @import("core");
const store = @import("store");
const write_caches = @import("write_caches.zig");
const write_caches_test = @import("write_caches_test.zig");
const testing = std.testing;
const Link = agent_test.Link;
const Site = agent_test.Site;
const CachesSite = write_caches_test.Site;
const bootOf = write_caches_test.bootOf;
const device = agent_test.device;

test "a HELLO whose layer a thread still opens waits, and only the latest is answered" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge_persistent");
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    var hello = Link.helloOf(boot.identity.id, 5, .token, &boot.identity.token);
    link.send(device, .{ .body = .{ .hello = hello } });
    hello.cookie = (try link.answer()).body.cookie.cookie;
    for (0..3) |_| link.send(device, .{ .body = .{ .hello = hello } });
    try testing.expectEqual(0, site.io.sent.count);
    try testing.expectEqual(1, site.io.works.count);
    try testing.expectEqual(null, boot.token_nonce);
    link.port.endWork(site.io.nextWork().?, site.io.now_us);
    const welcomes = site.io.sent.count;
    const welcome = try link.answer();
    try testing.expectEqual(.edge_persistent, welcome.body.welcome.write_cache);
    // What one HELLO is answered: WELCOME, and one of the largest size before it.
    try testing.expect(welcomes <= 2);
    try testing.expectEqual(.synced, site.io.sent_after);
}

test "a HELLO whose layer cannot be opened is refused, and so is its boot" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge_persistent");
    var link: Link = try .init(site);
    defer link.deinit();
    const first = site.boot(try site.begin(1));
    const welcome = try link.open(first);
    link.write(&welcome, 1, 1);
    site.sync(&link.port);
    site.boots.caches.closeAll();
    // Its head is damaged.
    const files = site.boots.caches.files;
    var name: store.files.Name = undefined;
    const dir = (try files.nextName("layers", "", &name)).?;
    var path: store.files.Name = undefined;
    const head = try files.open(try std.mem.print(&path, "layers/{s}/head", .{dir}), .write);
    try files.write(head, "x", 0);
    files.close(head);
    site.io.sent.clear();
    const next = site.boot(try site.begin(1));
    const refusal = try link.open(next);
    try testing.expectEqual(.cache_lost, refusal.body.refuse.code);
    try testing.expectEqual(.write_cache_lost, next.outcome.?.failed.cause);
    try testing.expectEqual(0, site.boots.caches.top);
    try testing.expectEqual(null, site.boots.caches.failure);
}

test "a HELLO of a boot that ends while its layer is opened is answered as that of no boot" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    var link: Link = try .init(site);
    defer link.deinit();
    const first = site.boot(try site.begin(1));
    var hello = Link.helloOf(first.identity.id, 5, .token, &first.identity.token);
    link.send(device, .{ .body = .{ .hello = hello } });
    hello.cookie = (try link.answer()).body.cookie.cookie;
    link.send(device, .{ .body = .{ .hello = hello } });
    _ = try site.begin(1);
    site.boots.caches.tick(site.io.now_us, &site.boots.table);
    // The end of the opening begins the closing.
    link.port.endWork(site.io.nextWork().?, site.io.now_us);
    try testing.expectEqual(0, site.io.sent.count);
    link.port.endWork(site.io.nextWork().?, site.io.now_us);
    try testing.expectEqual(.token_refused, (try link.answer()).body.refuse.code);
    try testing.expectEqual(0, site.boots.caches.top);
}

test "the layer of a boot that ended while a thread opened it is closed again" {
    for ([_]write_caches.CacheSettings{
        .{ .class = .edge },
        .{ .class = .edge_persistent },
    }) |wanted| {
        var site: CachesSite = try .init(wanted);
        defer site.deinit();
        var table: core.boot.Table = try .init(testing.allocator, 4);
        defer table.deinit(testing.allocator);
        const boot = bootOf(1, 1);
        const below: write_caches.Below = .{ .source = site.source() };
        try testing.expect(site.layers.grant(&boot, below, wanted, .token) == .waits);
        // Its HELLO again: one thread is enough.
        try testing.expect(site.layers.grant(&boot, below, wanted, .token) == .waits);
        try testing.expectEqual(1, site.layers.top);
        try testing.expectEqual(null, site.layers.find(boot.identity.id));
        site.layers.tick(0, &table);
        site.endWorks();
        try testing.expectEqual(0, site.layers.top);
        try testing.expectEqual(null, site.layers.find(boot.identity.id));
    }
}

test "a device's next boot waits until a thread has opened and closed the layer of the one before" {
    var site: CachesSite = try .init(.{ .class = .edge });
    defer site.deinit();
    const boot = bootOf(1, 1);
    const next = bootOf(2, 1);
    const below: write_caches.Below = .{ .source = site.source() };
    const opening = site.layers.grant(&boot, below, site.wanted, .token).waits;
    try testing.expectEqual(opening, site.layers.grant(&next, below, site.wanted, .token).waits);
    try testing.expectEqual(1, site.layers.top);
    opening.hello = .{ .claim = undefined, .size = 77 };
    // Its end begins the closing, and that of the closing has the HELLO answered.
    try testing.expectEqual(
        null,
        site.layers.endWork(site.io.ended.swapRemove(0).layer),
    );
    try testing.expectEqual(opening, site.layers.grant(&next, below, site.wanted, .token).waits);
    const hello = site.layers.endWork(site.io.ended.swapRemove(0).layer).?;
    try testing.expectEqual(77, hello.size);
    try testing.expectEqual(0, site.layers.top);
    try testing.expect(site.grant(&next, .token) == .cache);
}

test "the end of the process frees a layer in every phase" {
    var site: CachesSite = try .init(.{ .class = .edge });
    defer site.deinit();
    const below: write_caches.Below = .{ .source = site.source() };
    const boot = bootOf(1, 1);
    // Opened, and the agent has not heard of it; then open, and then closed.
    for (0..3) |ends| {
        _ = site.layers.grant(&boot, below, site.wanted, .token);
        if (ends > 0) _ = site.layers.endWork(site.io.ended.swapRemove(0).layer);
        if (ends > 1) try testing.expect(
            site.layers.grant(&bootOf(2, 1), below, site.wanted, .token) == .waits,
        );
        site.layers.closeAll();
        site.io.ended.clear();
    }
}

test "the layer of a boot that is gone is closed at once where nothing uses it" {
    var site: CachesSite = try .init(.{ .class = .edge });
    defer site.deinit();
    var table: core.boot.Table = try .init(testing.allocator, 4);
    defer table.deinit(testing.allocator);
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    site.layers.tick(0, &table);
    site.endWorks();
    try testing.expectEqual(0, site.layers.top);
}

test "the caches' end closes every layer" {
    var site: CachesSite = try .init(.{ .class = .edge });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    // Descriptor and memory of an open layer would be leaks.
    site.layers.deinit(testing.allocator);
    site.layers = .none(testing.allocator, site.io);
}

test "a name that a power cut left of a layer keeps its device from nothing" {
    var site: CachesSite = try .init(.{ .class = .device_ram_overflow });
    defer site.deinit();
    const boot = bootOf(1, 1);
    const files = site.layers.files;
    var buffer: store.files.Name = undefined;
    const dir = store.device_layers.dirOf(boot.identity.id, &buffer);
    try files.makeDir(dir);
    var name: store.files.Name = undefined;
    files.close(try files.create(try std.mem.print(&name, "{s}/data", .{dir})));
    try testing.expect(site.grant(&boot, .resumption) == .cache);
    try testing.expectEqual(null, try files.nextName("layers", "", &name));
}

test "a layer that ends with its boot is new for the next one" {
    var site: CachesSite = try .init(.{ .class = .edge });
    defer site.deinit();
    const boot = bootOf(1, 1);
    const first = site.grant(&boot, .token).cache;
    const next = bootOf(2, 1);
    try testing.expect(site.grant(&next, .token).cache.id != first.id);
    try testing.expectEqual(1, site.layers.top);
    // Its head is written with its first bytes.
    const layer = site.layers.find(next.identity.id).?;
    try testing.expectEqual(0, layer.inner.head.sequence);
}

/// A directory that takes names, and fails to keep them.
const ForgetfulDir = struct {
    var problem: store.files.Error = undefined;

    fn makeDir(_: *anyopaque, _: []const u8) store.files.Error!void {}

    fn syncDir(_: *anyopaque, _: []const u8) store.files.Error!void {
        return problem;
    }
};

test "an edge whose store's disk fails keeps writes as soon as it works" {
    const WriteCaches = write_caches_test.WriteCaches;
    var site: CachesSite = try .init(.{ .class = .edge });
    defer site.deinit();
    var vtable = site.on.files().vtable.*;
    vtable.makeDir = ForgetfulDir.makeDir;
    vtable.syncDir = ForgetfulDir.syncDir;
    const forgetful: store.Files = .{ .context = site.on.files().context, .vtable = &vtable };
    // Without the right to write there, it does not start.
    ForgetfulDir.problem = error.Denied;
    const refused = WriteCaches.init(testing.allocator, site.io, forgetful, 1, site.wanted);
    try testing.expectError(error.NotWritable, refused);
    ForgetfulDir.problem = error.DiskFailed;
    site.layers.deinit(testing.allocator);
    site.layers = try .init(testing.allocator, site.io, forgetful, 1, site.wanted);
    const boot = bootOf(1, 1);
    try testing.expectEqual(.cache_failed, site.grant(&boot, .token).refused.code);
    site.layers.files = site.on.files();
    try testing.expect(site.grant(&boot, .token) == .cache);
}

test "an almost full disk takes what layers own already, no new block, and no new layer" {
    var site: CachesSite = try .init(.{ .class = .edge_persistent, .full = .read_only });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    const layer = site.layers.find(boot.identity.id).?;
    try testing.expectEqual(.done, try site.write(layer, 'a'));
    site.io.is_store_short = true;
    try testing.expectEqual(.done, try site.write(layer, 'b'));
    const bytes: [512]u8 = @splat('c');
    const far: write_caches.Order = .{ .write = .{ .offset = 8192, .bytes = &bytes } };
    try testing.expectEqual(.cache_full, site.layers.carryOut(layer, undefined, far).ended);
    site.endProcess();
    // It opens what is there, and the device reads on; nothing new is made.
    _ = site.grant(&boot, .resumption).cache;
    var other = bootOf(2, 1);
    other.identity.mac.bytes[5] = 8;
    try testing.expectEqual(.cache_failed, site.grant(&other, .token).refused.code);
    site.io.is_store_short = false;
    _ = site.grant(&other, .token).cache;
}
