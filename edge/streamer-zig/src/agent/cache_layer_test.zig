//! The life of a write layer: opened by a thread while a HELLO waits, and closed by one.

const std = @import("std");
const agent_test = @import("agent_test.zig");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const write_caches = @import("write_caches.zig");
const write_caches_test = @import("write_caches_test.zig");
const wire = @import("wire").stream;
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
    site.forget(1);
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
    const ref = site.boots.table.findById(first.identity.id).?;
    site.boots.supersede(site.io.now_us, ref);
    site.boots.caches.tick(site.io.now_us, &site.boots.table);
    // The end of the opening begins the closing.
    link.port.endWork(site.io.nextWork().?, site.io.now_us);
    try testing.expectEqual(0, site.io.sent.count);
    link.port.endWork(site.io.nextWork().?, site.io.now_us);
    try testing.expectEqual(.token_refused, (try link.answer()).body.refuse.code);
    try testing.expectEqual(0, site.boots.caches.top);
}

test "a device that begins its next boot while a HELLO of the last one waits is heard in the next" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    var link: Link = try .init(site);
    defer link.deinit();
    var ids: [2]base.Uuid = undefined;
    for (&ids, 5..) |*id, nonce| {
        const identity = site.boot(try site.begin(1)).identity;
        id.* = identity.id;
        var hello = Link.helloOf(identity.id, @intCast(nonce), .token, &identity.token);
        link.send(device, .{ .body = .{ .hello = hello } });
        hello.cookie = (try link.answer()).body.cookie.cookie;
        link.send(device, .{ .body = .{ .hello = hello } });
        try testing.expectEqual(0, site.io.sent.count);
    }
    site.sync(&link.port);
    try testing.expectEqual(.edge, (try link.answer()).body.welcome.write_cache);
    try testing.expect(link.port.server.sessionOf(ids[1]) != null);
    try testing.expectEqual(null, link.port.server.sessionOf(ids[0]));
}

test "the layer of a boot that ended while a thread opened it is closed again" {
    for ([_]write_caches.CacheSettings{
        .{ .class = .edge },
        .{ .class = .edge_persistent },
    }) |wanted| {
        var site: CachesSite = try .init(wanted);
        defer site.deinit();
        var table: core.boot.Table = try .init(testing.allocator, .{ .capacity = 4 });
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
    var table: core.boot.Table = try .init(testing.allocator, .{ .capacity = 4 });
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

test "orders of one turn are carried out together, and one that does not fit refuses those behind it" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    site.setCache("edge", .read_only);
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    const welcome = try link.open(boot);
    // Sectors 1 and 2 lie in one block, which is the layer's limit; sector 8 in another.
    for ([_]u8{ 1, 2, 8, 1 }, 1..) |sector, id| link.write(&welcome, @intCast(id), sector);
    link.control(&welcome, 5, .flush);
    try testing.expectEqual(0, site.io.sent.count);
    try site.endWrite(&link.port);
    try testing.expectEqual(0, site.io.works.count);
    const codes = [_]wire.WriteCode{ .done, .done, .cache_full, .cache_full, .done };
    try testing.expectEqual(codes.len, site.io.sent.count);
    for (codes, site.io.sent.buffer[0..codes.len]) |code, *sent|
        try testing.expectEqual(code, (try wire.parse(sent.bytes())).body.write_ack.code);
    site.io.sent.clear();
    // Later ones are refused at once.
    link.write(&welcome, 6, 1);
    try testing.expectEqual(1, site.io.sent.count);
}

test "an order that arrives while a thread carries out others waits for the next turn" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge_persistent");
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    const welcome = try link.open(boot);
    const caches = &site.boots.caches;
    const layer = caches.find(boot.identity.id).?;
    link.write(&welcome, 1, 1);
    caches.beginWorks();
    try testing.expect(layer.isWriting());
    link.write(&welcome, 2, 2);
    caches.beginWorks();
    try testing.expectEqual(1, site.io.works.count);
    try testing.expectEqual(2, layer.orders.count);
    link.port.endWork(site.io.nextWork().?, site.io.now_us);
    try testing.expect(!layer.isWriting());
    try testing.expectEqual(1, layer.waiting_count);
    // The sync of the first and the writing of the second go on side by side.
    caches.beginWorks();
    try testing.expectEqual(2, site.io.works.count);
    try testing.expectEqual(1, layer.syncing_count);
    // A layer is not taken from a thread, and a write that the sync does not cover waits for one.
    site.forget(1);
    const next = site.boot(try site.begin(1));
    try testing.expectEqual(.busy, (try refusalOf(&link, next)).code);
    site.sync(&link.port);
    try testing.expectEqual(0, layer.waiting_count);
    try testing.expectEqual(0, layer.orders.count);
}

/// Sends the HELLO of a boot without ending any work.
fn refusalOf(link: *Link, boot: *const core.boot.Boot) !wire.Refuse {
    var hello = Link.helloOf(boot.identity.id, 6, .token, &boot.identity.token);
    link.send(device, .{ .body = .{ .hello = hello } });
    hello.cookie = (try link.answer()).body.cookie.cookie;
    link.send(device, .{ .body = .{ .hello = hello } });
    return (try link.answer()).body.refuse;
}

test "a layer that is lost beside a thread that writes to it stays lost" {
    var site: CachesSite = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token);
    const layer = site.layers.find(boot.identity.id).?;
    const bytes: [512]u8 = @splat('x');
    const ref: core.stream.Server.WriteRef =
        .{ .boot_id = boot.identity.id, .session_id = 1, .request_id = 1 };
    const order: write_caches.Order = .{ .write = .{ .offset = 0, .bytes = &bytes } };
    try testing.expectEqual(.waits, site.layers.takeOrder(layer, ref, order));
    site.layers.beginWorks();
    layer.lose();
    try testing.expectEqual(.lost, layer.held().state);
    try testing.expect(!layer.inner.is_lost);
    _ = site.io.ended.swapRemove(0);
    _ = site.layers.endOrders(layer).?;
    try testing.expectEqual(null, site.layers.endOrders(layer));
    try testing.expect(layer.inner.is_lost);
    var read: [512]u8 = undefined;
    try testing.expectError(error.Lost, layer.inner.read(&read, 0));
}

test "a device with every slot of its share is asked to send a write again" {
    var site: CachesSite = try .init(.{ .class = .edge });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token);
    const layer = site.layers.find(boot.identity.id).?;
    const ref: core.stream.Server.WriteRef =
        .{ .boot_id = boot.identity.id, .session_id = 1, .request_id = 1 };
    const bytes: [8192]u8 = @splat('x');
    const order: write_caches.Order = .{ .write = .{ .offset = 0, .bytes = &bytes } };
    var count: u32 = 0;
    while (site.layers.takeOrder(layer, ref, order) == .waits) count += 1;
    try testing.expect(count > 8);
    try testing.expectEqual(.later, site.layers.takeOrder(layer, ref, order));
    site.layers.beginWorks();
    _ = site.io.ended.swapRemove(0);
    while (site.layers.endOrders(layer)) |ended|
        try testing.expectEqual(.done, ended.outcome.ended);
    try testing.expectEqual(.waits, site.layers.takeOrder(layer, ref, order));
}

test "a layer's number is odd, whatever its id" {
    var site: CachesSite = try .init(.{ .class = .edge });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    const layer = site.layers.find(boot.identity.id).?;
    layer.inner.head.layer_id = .fromBytes(@splat(2));
    try testing.expectEqual(0x0202_0202_0202_0203, layer.cache().id);
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
    var site: CachesSite = try .init(.{ .class = .edge, .full = .read_only });
    defer site.deinit();
    var boots = [_]core.boot.Boot{ bootOf(1, 1), bootOf(2, 1), bootOf(3, 1) };
    for (&boots, 0..) |*boot, index| boot.identity.mac.bytes[5] = @intCast(index);
    for (boots[0..2]) |*boot| _ = site.grant(boot, .token).cache;
    const written = site.layers.find(boots[0].identity.id).?;
    try testing.expectEqual(.done, try site.write(written, 'a'));
    site.io.is_store_short = true;
    const bytes: [512]u8 = @splat('b');
    const order: write_caches.Order = .{ .write = .{ .offset = 512, .bytes = &bytes } };
    const empty = site.layers.find(boots[1].identity.id).?;
    for ([_]*write_caches.Layer{ written, empty }) |layer| {
        const ref: core.stream.Server.WriteRef =
            .{ .boot_id = layer.boot_id, .session_id = 1, .request_id = 1 };
        try testing.expectEqual(.waits, site.layers.takeOrder(layer, ref, order));
        site.layers.beginWorks();
        _ = site.io.ended.swapRemove(0);
        const expected: wire.WriteCode = if (layer == written) .done else .cache_full;
        try testing.expectEqual(expected, site.layers.endOrders(layer).?.outcome.ended);
        try testing.expectEqual(null, site.layers.endOrders(layer));
    }
    try testing.expectEqual(.cache_failed, site.grant(&boots[2], .token).refused.code);
    site.io.is_store_short = false;
    _ = site.grant(&boots[2], .token).cache;
}

test "a block that has rotted after an orderly end of the process ends its device's disk" {
    var site: CachesSite = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    const layer = site.layers.find(boot.identity.id).?;
    try testing.expectEqual(.done, try site.write(layer, 'a'));
    try testing.expect(!site.layers.isWorking());
    site.layers.settleAll(std.math.maxInt(u64));
    site.endProcess();
    var dir: store.files.Name = undefined;
    var name: store.files.Name = undefined;
    const files = site.on.files();
    const found = (try files.nextName("layers", "", &dir)).?;
    const data = try files.open(try std.mem.print(&name, "layers/{s}/data", .{found}), .write);
    try files.write(data, "rot", 700);
    files.close(data);
    _ = site.grant(&boot, .resumption).cache;
    const again = site.layers.find(boot.identity.id).?;
    var bytes: [512]u8 = undefined;
    try testing.expectError(error.Lost, again.inner.read(&bytes, 0));
    try testing.expectEqual(0, again.inner.rotten_at.?);
    try testing.expectEqual(.cache_lost, try site.write(again, 'b'));
    try testing.expectEqual(.lost, again.held().state);
}
