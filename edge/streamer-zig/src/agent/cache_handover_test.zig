//! Write caches on a real directory that change programs.

const std = @import("std");
const store = @import("store");
const write_caches = @import("write_caches.zig");
const write_caches_test = @import("write_caches_test.zig");
const testing = std.testing;
const bootOf = write_caches_test.bootOf;
const Site = write_caches_test.Site;
const WriteCaches = write_caches_test.WriteCaches;

/// Continues as the next program, in the same process.
fn exchange(site: *Site) !void {
    try site.layers.handOver();
    const handle = site.layers.handed_over.?;
    site.layers.deinit(testing.allocator);
    site.layers = try .init(testing.allocator, site.io, site.on.files(), 4, site.wanted);
    site.layers.take(handle);
}

fn write(site: *Site, boot: anytype, byte: u8) !void {
    const layer = site.layers.find(boot.identity.id).?;
    try testing.expectEqual(.done, try site.write(layer, byte));
}

test "the boot of a layer continues with it after each exchange, and nobody else gets it" {
    const Class = @FieldType(write_caches.CacheSettings, "class");
    for ([_]Class{ .edge, .device_ram_overflow }) |class| {
        var site: Site = try .init(.{ .class = class, .full = .read_only });
        defer site.deinit();
        var boot = bootOf(1, 1);
        const cache = site.grant(&boot, .token).cache;
        boot.token_nonce = @splat(1);
        for (1..11) |round| {
            try write(&site, &boot, @intCast(round));
            try exchange(&site);
            try testing.expectEqual(1, site.layers.volatileCount());
            try testing.expectEqual(cache, site.grant(&boot, .resumption).cache);
            const layer = site.layers.find(boot.identity.id).?;
            try testing.expectEqual(class, layer.class);
            try testing.expectEqual(.read_only, layer.full);
            try testing.expectEqual(@as(u8, @intCast(round)), try site.byteOf(layer));
        }
        // Another boot of the device begins with nothing.
        const later = bootOf(2, 1);
        try testing.expect(site.grant(&later, .token).cache.id != cache.id);
        try testing.expectEqual('b', try site.byteOf(site.layers.find(later.identity.id).?));
        try testing.expectEqual(null, site.layers.find(boot.identity.id));
    }
}

test "a layer that a thread opens or writes delays the hand-over" {
    var site: Site = try .init(.{ .class = .edge });
    defer site.deinit();
    const boot = bootOf(1, 1);
    const below: write_caches.Below = .{ .source = site.source(), .root = site.root };
    try testing.expect(!site.layers.isBusy());
    try testing.expect(site.layers.grant(&boot, below, site.wanted, .token) == .waits);
    try testing.expect(site.layers.isBusy());
    site.endWorks();
    try testing.expect(!site.layers.isBusy());
    const layer = site.layers.find(boot.identity.id).?;
    const bytes: [512]u8 = @splat(3);
    const outcome = site.layers.takeOrder(
        layer,
        .{ .boot_id = layer.boot_id, .session_id = 1, .request_id = 1 },
        .{ .write = .{ .offset = 512, .bytes = &bytes } },
    );
    try testing.expectEqual(.waits, outcome);
    site.layers.beginWorks();
    try testing.expect(site.layers.isBusy());
    layer.work.is_run = true;
    while (site.layers.endOrders(layer)) |_| {}
    try testing.expect(!site.layers.isBusy());
    _ = site.io.ended.swapRemove(0);
}

test "a boot whose layer was not handed over hears that its cache is lost" {
    var site: Site = try .init(.{ .class = .edge });
    defer site.deinit();
    var boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    boot.token_nonce = @splat(1);
    site.layers.find(boot.identity.id).?.lose();
    try exchange(&site);
    try testing.expectEqual(0, site.layers.volatileCount());
    try testing.expectEqual(.cache_lost, site.grant(&boot, .resumption).refused.code);
}

test "a layer above another disk than before is lost" {
    var site: Site = try .init(.{ .class = .edge });
    defer site.deinit();
    var boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    boot.token_nonce = @splat(1);
    try exchange(&site);
    site.root = @splat(7);
    try testing.expectEqual(.cache_lost, site.grant(&boot, .resumption).refused.code);
    site.root = @splat(0);
    try testing.expect(site.grant(&boot, .resumption) == .cache);
}

test "a full layer stays closed, and the layer of a boot that is gone is closed" {
    var site: Site = try .init(.{ .class = .edge });
    defer site.deinit();
    var boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    boot.token_nonce = @splat(1);
    site.layers.find(boot.identity.id).?.is_closed = true;
    try exchange(&site);
    try testing.expectEqual(.stopped, site.layers.find(boot.identity.id).?.held().state);
    var table: @import("core").boot.Table = try .init(testing.allocator, .{ .capacity = 1 });
    defer table.deinit(testing.allocator);
    site.layers.tick(1, &table);
    site.endWorks();
    try testing.expectEqual(0, site.layers.volatileCount());
}

test "nothing is written to a layer once it was handed over, and a failure changes nothing" {
    var site: Site = try .init(.{ .class = .edge });
    defer site.deinit();
    var boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    boot.token_nonce = @splat(1);
    try write(&site, &boot, 1);
    // A directory of that name cannot be replaced.
    try site.on.files().makeDir("cache-handover");
    try site.on.files().makeDir("cache-handover/in");
    try testing.expectError(error.Exists, site.layers.handOver());
    try testing.expectEqual(null, site.layers.handed_over);
    try write(&site, &boot, 2);
    try site.on.files().remove("cache-handover/in");
    try site.on.files().remove("cache-handover");
    try site.layers.handOver();
    const layer = site.layers.find(boot.identity.id).?;
    const bytes: [512]u8 = @splat(3);
    const outcome = site.layers.takeOrder(
        layer,
        .{ .boot_id = layer.boot_id, .session_id = 1, .request_id = 1 },
        .{ .write = .{ .offset = 512, .bytes = &bytes } },
    );
    try testing.expectEqual(.waits, outcome);
    site.layers.beginWorks();
    try testing.expectEqual(0, layer.writing_count);
    try testing.expectEqual(2, try site.byteOf(layer));
    const handle = site.layers.handed_over.?;
    site.layers.deinit(testing.allocator);
    site.layers = try .init(testing.allocator, site.io, site.on.files(), 4, site.wanted);
    site.layers.take(handle);
    _ = site.grant(&boot, .resumption).cache;
    try testing.expectEqual(2, try site.byteOf(site.layers.find(boot.identity.id).?));
}

test "what is no whole hand-over gives no layer, and more than the table holds is not taken" {
    var site: Site = try .init(.{ .class = .edge });
    defer site.deinit();
    const files = site.on.files();
    const empty = try files.create("empty");
    try files.remove("empty");
    site.layers.take(empty);
    try testing.expectEqual(0, site.layers.top);
    for (1..4) |id| {
        var boot = bootOf(@intCast(id), 1);
        boot.identity.mac.bytes[5] = @intCast(id);
        _ = site.grant(&boot, .token).cache;
    }
    try site.layers.handOver();
    const handle = site.layers.handed_over.?;
    var left: [3]store.WriteLayer = undefined;
    for (&left, site.layers.layers[0..3]) |*layer, place| layer.* = place.?.inner;
    site.layers.deinit(testing.allocator);
    site.layers = try .init(testing.allocator, site.io, files, 2, site.wanted);
    site.layers.take(handle);
    try testing.expectEqual(2, site.layers.volatileCount());
    // It was closed.
    try testing.expectError(error.DiskFailed, files.size(left[2].data));
}
