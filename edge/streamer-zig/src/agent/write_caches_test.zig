//! Write layers of boots on a real directory.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const private_images = @import("private_images.zig");
const write_caches = @import("write_caches.zig");
const testing = std.testing;
pub const WriteCaches = write_caches.WriteCaches(WorkingIo);

/// Does a work for a layer at once; `ended` is what the agent hears of it.
pub const WorkingIo = struct {
    prng: base.Prng = .init(1),
    ended: base.BoundedArray(*write_caches.LayerWork, 16) = .empty,
    is_store_short: bool = false,
    snapshot_order: ?write_caches.SnapshotOrder = null,
    snapshot_answer: ?write_caches.SnapshotAnswer = null,

    pub fn now(_: *const WorkingIo) u64 {
        return 0;
    }

    pub fn isStoreShort(io: *const WorkingIo) bool {
        return io.is_store_short;
    }

    pub fn snapshotOrder(io: *const WorkingIo) ?write_caches.SnapshotOrder {
        return io.snapshot_order;
    }

    pub fn answerSnapshot(io: *WorkingIo, answer: write_caches.SnapshotAnswer) void {
        io.snapshot_order = null;
        io.snapshot_answer = answer;
    }

    pub fn random(io: *WorkingIo, buffer: []u8) void {
        io.prng.fill(buffer);
    }

    pub fn log(_: *WorkingIo, comptime _: []const u8, _: anytype) void {}

    pub fn startWork(io: *WorkingIo, work: *write_caches.LayerWork) void {
        work.run();
        io.endWorkSoon(work);
    }

    pub fn endWorkSoon(io: *WorkingIo, work: *write_caches.LayerWork) void {
        io.ended.appendAssumeCapacity(work);
    }

    fn takeSync(io: *WorkingIo) ?*write_caches.Layer {
        if (io.ended.count == 0) return null;
        const work = io.ended.swapRemove(0);
        std.debug.assert(work.kind == .sync);
        return work.layer;
    }
};

const disk_size = 64 << 10;

pub const Site = struct {
    tmp: testing.TmpDir,
    disk: store.StoreFile,
    io: *WorkingIo,
    on: *store.LinuxFiles,
    layers: WriteCaches,
    wanted: write_caches.CacheSettings,
    root: [32]u8 = @splat(0),

    pub fn init(wanted: write_caches.CacheSettings) !Site {
        var tmp = testing.tmpDir(.{});
        try tmp.dir.writeFile(testing.io, .{
            .sub_path = "disk",
            .data = &@as([disk_size]u8, @splat('b')),
        });
        const io = try testing.allocator.create(WorkingIo);
        io.* = .{};
        const on = try testing.allocator.create(store.LinuxFiles);
        on.* = .fromFd(tmp.dir.handle);
        return .{
            .tmp = tmp,
            .disk = try .openBelow(tmp.dir.handle, "disk", .disk),
            .io = io,
            .on = on,
            .layers = try .init(testing.allocator, io, on.files(), 4, wanted),
            .wanted = wanted,
        };
    }

    pub fn deinit(site: *Site) void {
        site.endProcess();
        site.layers.deinit(testing.allocator);
        testing.allocator.destroy(site.io);
        testing.allocator.destroy(site.on);
        site.disk.close();
        site.tmp.cleanup();
    }

    /// What the end of the process does: files are closed, and nothing is synced.
    pub fn endProcess(site: *Site) void {
        site.layers.closeAll();
    }

    pub fn grant(
        site: *Site,
        boot: *const core.boot.Boot,
        kind: @import("wire").stream.HelloKind,
    ) write_caches.CacheGrant {
        var wanted = site.wanted;
        if (boot.assignment.writes) wanted = .{ .class = .edge_persistent, .writes_version = true };
        return site.grantAbove(boot, site.source(), wanted, kind);
    }

    /// Asks again once threads have opened or closed what the device waits for.
    fn grantAbove(
        site: *Site,
        boot: *const core.boot.Boot,
        disk: store.BlockSource,
        wanted: write_caches.CacheSettings,
        kind: @import("wire").stream.HelloKind,
    ) write_caches.CacheGrant {
        const below: write_caches.Below = .{ .source = disk, .root = site.root };
        var granted = site.layers.grant(boot, below, wanted, kind);
        while (granted == .waits) {
            site.endWorks();
            granted = site.layers.grant(boot, below, wanted, kind);
            site.layers.clearFailure();
        }
        return granted;
    }

    /// Threads have opened and closed layers.
    pub fn endWorks(site: *Site) void {
        while (site.io.ended.count > 0) {
            const work = site.io.ended.swapRemove(0);
            std.debug.assert(work.kind != .sync);
            _ = site.layers.endWork(work.layer);
        }
    }

    pub fn source(site: *Site) store.BlockSource {
        return .{ .context = &site.disk, .vtable = &.{ .read = readFile }, .size = site.disk.size };
    }

    fn readFile(context: *anyopaque, buffer: []u8, offset: u64) store.block_source.ReadError!void {
        const disk: *const store.StoreFile = @ptrCast(@alignCast(context));
        return disk.read(buffer, offset);
    }

    pub fn write(
        site: *Site,
        layer: *write_caches.Layer,
        byte: u8,
    ) !@import("wire").stream.WriteCode {
        const bytes: [512]u8 = @splat(byte);
        const ref: core.stream.Server.WriteRef =
            .{ .boot_id = layer.boot_id, .session_id = 1, .request_id = 1 };
        switch (site.takeOrder(layer, ref, .{ .write = .{ .offset = 512, .bytes = &bytes } })) {
            .ended => |code| return code,
            .later => return error.Later,
            .waits => {},
        }
        site.layers.noteWork(layer);
        site.layers.beginWorks();
        const ended = site.io.takeSync() orelse return error.NoEnd;
        const code = site.layers.endSync(ended);
        site.layers.release(ended);
        return code;
    }

    /// Has a thread carry out an order.
    fn takeOrder(
        site: *Site,
        layer: *write_caches.Layer,
        ref: core.stream.Server.WriteRef,
        order: write_caches.Order,
    ) write_caches.WriteOutcome {
        const outcome = site.layers.takeOrder(layer, ref, order);
        if (layer.orders.count == 0) return outcome;
        layer.writing_count = layer.pool.batchOf(&layer.orders);
        layer.work = .{ .layer = layer, .kind = .write };
        layer.work.run();
        const ended = site.layers.endOrders(layer).?;
        std.debug.assert(site.layers.endOrders(layer) == null);
        return ended.outcome;
    }

    pub fn byteOf(site: *Site, layer: *write_caches.Layer) !u8 {
        _ = site;
        var bytes: [1024]u8 = undefined;
        try layer.inner.read(&bytes, 0);
        try testing.expectEqual('b', bytes[0]);
        return bytes[1023];
    }
};

pub fn bootOf(id: u8, version: u8) core.boot.Boot {
    return .init(
        .{
            .id = .fromBytes(@splat(id)),
            .mac = .{ .bytes = .{ 2, 0, 0, 0, 0, 9 } },
            .handle = 1,
            .token = @splat(1),
        },
        .{ .version_id = .fromBytes(@splat(version)) },
        0,
        0,
    );
}

test "what a persistent write cache holds is there after the edge's end, for that device, disk and version alone" {
    var site: Site = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    var boot = bootOf(1, 1);
    const first = site.grant(&boot, .token).cache;
    try testing.expectEqual(disk_size, first.size);
    try testing.expectEqual(.done, try site.write(site.layers.find(boot.identity.id).?, 'w'));
    try testing.expectEqual('w', try site.byteOf(site.layers.find(boot.identity.id).?));
    site.endProcess();
    // The boot goes on, and the device's next one finds the same.
    try testing.expectEqual(first.id, site.grant(&boot, .resumption).cache.id);
    const next = bootOf(2, 1);
    try testing.expectEqual(first.id, site.grant(&next, .token).cache.id);
    try testing.expectEqual(null, site.layers.find(boot.identity.id));
    try testing.expectEqual('w', try site.byteOf(site.layers.find(next.identity.id).?));
    // The same id with other bytes is another version.
    site.endProcess();
    site.root = @splat(9);
    try testing.expectEqual(.cache_version, site.grant(&next, .token).refused.code);
    site.root = @splat(0);
    const other = bootOf(3, 2);
    try testing.expectEqual(.cache_version, site.grant(&other, .token).refused.code);
    site.wanted.of_another_version = .discard;
    const new = site.grant(&other, .token).cache;
    try testing.expect(new.id != first.id);
    try testing.expectEqual('b', try site.byteOf(site.layers.find(other.identity.id).?));
}

test "a device that was served with a write cache never goes on without it" {
    for ([_]write_caches.CacheSettings{
        .{ .class = .edge },
        .{ .class = .edge_persistent },
    }) |wanted| {
        var site: Site = try .init(wanted);
        defer site.deinit();
        var boot = bootOf(1, 1);
        _ = site.grant(&boot, .token).cache;
        boot.token_nonce = @splat(1);
        try testing.expectEqual(.done, try site.write(site.layers.find(boot.identity.id).?, 'w'));
        site.endProcess();
        var name: store.files.Name = undefined;
        if (wanted.class == .edge) {
            try testing.expectEqual(null, try site.layers.files.nextName("layers", "", &name));
        } else {
            const id = (try site.layers.files.nextName("layers", "", &name)).?;
            var buffer: [store.files.name_size_max]u8 = undefined;
            try store.WriteLayer.remove(
                site.layers.files,
                try std.mem.print(&buffer, "layers/{s}", .{id}),
            );
        }
        try testing.expectEqual(.cache_lost, site.grant(&boot, .resumption).refused.code);
    }
}

test "a write cache that is full stops its device, or takes no writes any more, and keeps what it has" {
    for ([_]write_caches.CacheSettings{
        .{ .class = .edge_persistent, .limit_bytes = 4096, .full = .stop },
        .{ .class = .edge_persistent, .limit_bytes = 4096, .full = .read_only },
    }) |wanted| {
        var site: Site = try .init(wanted);
        defer site.deinit();
        const boot = bootOf(1, 1);
        _ = site.grant(&boot, .token).cache;
        const layer = site.layers.find(boot.identity.id).?;
        try testing.expectEqual(.done, try site.write(layer, 'w'));
        try testing.expectEqual(.ok, layer.held().state);
        const bytes: [4096]u8 = @splat('x');
        const order: write_caches.Order = .{ .write = .{ .offset = 8192, .bytes = &bytes } };
        const ref: core.stream.Server.WriteRef =
            .{ .boot_id = boot.identity.id, .session_id = 1, .request_id = 2 };
        const code: @import("wire").stream.WriteCode =
            if (wanted.full == .stop) .stopped else .cache_full;
        try testing.expectEqual(code, site.takeOrder(layer, ref, order).ended);
        // Also what had its place before, and what would make room.
        try testing.expectEqual(code, try site.write(layer, 'x'));
        try testing.expectEqual(code, site.takeOrder(
            layer,
            ref,
            .{ .discard = .{ .offset = 0, .length = 4096 } },
        ).ended);
        const flushed = site.takeOrder(layer, ref, .flush);
        switch (wanted.full) {
            .stop => {
                try testing.expectEqual(.stopped, layer.held().state);
                try testing.expectEqual(.stopped, flushed.ended);
            },
            .read_only => {
                try testing.expectEqual(.read_only, layer.held().state);
                try testing.expectEqual(.waits, flushed);
            },
        }
        try testing.expectEqual('w', try site.byteOf(layer));
        layer.waiting_count = 0;
        // More room counts from the next start on.
        site.wanted.limit_bytes = 8192;
        const next = bootOf(2, 1);
        try testing.expectEqual(8192, site.grant(&next, .token).cache.size);
        try testing.expectEqual(.done, try site.write(layer, 'y'));
        try testing.expectEqual('y', try site.byteOf(layer));
        site.endProcess();
        site.wanted.limit_bytes = 16384;
        try testing.expectEqual(16384, site.grant(&next, .resumption).cache.size);
    }
}

test "a device with an image of its own stays with the version that this lies above, until somebody resets it" {
    var site: Site = try .init(.{ .class = .private });
    defer site.deinit();
    const boot = bootOf(1, 1);
    const mac = boot.identity.mac;
    try testing.expectEqual(null, imageOf(&site, &boot, mac));
    try testing.expectEqual(.edge_persistent, site.grant(&boot, .token).cache.class);
    const layer = site.layers.find(boot.identity.id).?;
    try testing.expectEqual(core.boot.Guest.CacheStatus{ .class = .private }, layer.held());
    try testing.expectEqual(.done, try site.write(layer, 'w'));
    // Another version is the default now: the device is given the old one again.
    const promoted = bootOf(2, 2);
    try testing.expect(
        imageOf(&site, &promoted, mac).?.eql(boot.assignment.version_id),
    );
    // Never the new one with what was written above the old one, nor without it.
    site.wanted.of_another_version = .discard;
    site.endProcess();
    try testing.expectEqual(.cache_version, site.grant(&promoted, .token).refused.code);
    // An image for each vDisk; the persistent write cache is a third place.
    var other = bootOf(3, 2);
    other.assignment.vdisk_id = .fromBytes(@splat(5));
    try testing.expectEqual(null, imageOf(&site, &other, mac));
    const head = (try walkOne(&site)).head catch unreachable;
    const files = site.layers.files;
    try testing.expectEqual(
        1,
        try store.device_layers.drop(files, head.binding.device_id, .private, null),
    );
    try testing.expectEqual(null, imageOf(&site, &promoted, mac));
    _ = site.grant(&promoted, .token).cache;
    try testing.expectEqual('b', try site.byteOf(site.layers.find(promoted.identity.id).?));
}

fn imageOf(site: *Site, boot: *const core.boot.Boot, mac: base.Mac) ?base.Uuid {
    const name = private_images.nameOf(&boot.assignment, mac);
    return private_images.versionBelow(site.layers.files, name);
}

fn walkOne(site: *Site) !store.device_layers.LayerInfo {
    var walk: store.device_layers.LayerIterator = .{ .files = site.layers.files };
    return (try walk.next()).?;
}

fn putSession(server: *core.stream.Server, boot_id: base.Uuid, last_packet_at_us: u64) void {
    const from: base.Endpoint = .{ .ip = .init(10, 0, 0, 1), .port = 9 };
    server.sessions[0] =
        .{ .id = 1, .boot_id = boot_id, .from = from, .last_packet_at_us = last_packet_at_us };
    server.enter(&server.sessions[0]);
}

test "what stays on the disk is closed while its device is not heard, and only then somebody else may remove it" {
    var site: Site = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    var server: core.stream.Server = try .init(testing.allocator, .{ .sessions_max = 2, .keys = .{
        .cookie = @splat(1),
        .session = @splat(2),
        .resumption = @splat(3),
    } });
    defer server.deinit(testing.allocator);
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    try testing.expectEqual(.done, try site.write(site.layers.find(boot.identity.id).?, 'w'));
    // Its device said something at second 100.
    putSession(&server, boot.identity.id, 100 * std.time.us_per_s);
    const files = site.layers.files;
    const device_id = site.layers.find(boot.identity.id).?.device_id;
    site.layers.closeSilent(&server, 129 * std.time.us_per_s);
    try testing.expectError(
        error.InUse,
        store.device_layers.drop(files, device_id, .edge_persistent, null),
    );
    site.layers.closeSilent(&server, 130 * std.time.us_per_s);
    try testing.expectEqual(null, site.layers.find(boot.identity.id));
    // The device has to say hello, and finds its layer again.
    try testing.expectEqual(null, server.sessionOf(boot.identity.id));
    _ = site.grant(&boot, .resumption).cache;
    try testing.expectEqual('w', try site.byteOf(site.layers.find(boot.identity.id).?));
    site.layers.closeSilent(&server, 131 * std.time.us_per_s);
    try testing.expectEqual(
        1,
        try store.device_layers.drop(files, device_id, .edge_persistent, null),
    );
    // A device that comes back after that never goes on with the version alone.
    try testing.expectEqual(.cache_lost, site.grant(&boot, .resumption).refused.code);
    const next = bootOf(2, 1);
    _ = site.grant(&next, .token).cache;
    try testing.expectEqual('b', try site.byteOf(site.layers.find(next.identity.id).?));
}

test "with the write cache in the device nothing is made" {
    var site: Site = try .init(.{});
    defer site.deinit();
    const boot = bootOf(1, 1);
    try testing.expectEqual(.none, site.grant(&boot, .token));
}

const maintained = bootOfWriter(7, 5, 1);

fn bootOfWriter(id: u8, version: u8, device: u8) core.boot.Boot {
    var boot = bootOf(id, version);
    boot.assignment.device_id = .fromBytes(@splat(device));
    boot.assignment.writes = true;
    return boot;
}

fn refusalTo(
    site: *Site,
    boot: *const core.boot.Boot,
    kind: @import("wire").stream.HelloKind,
) write_caches.Refusal {
    return site.grant(boot, kind).refused;
}

test "a maintenance version has one writer, lies under its own id, and is told from all others" {
    // The write cache of the vDisk is no matter, nor what becomes of caches of other versions.
    var site: Site = try .init(.{ .class = .edge, .of_another_version = .discard });
    defer site.deinit();
    const boot = maintained;
    const first = site.grant(&boot, .token).cache;
    try testing.expectEqual(.edge_persistent, first.class);
    try testing.expectEqual(.done, try site.write(site.layers.find(boot.identity.id).?, 'w'));
    var name: store.files.Name = undefined;
    const id = (try site.layers.files.nextName("layers", "", &name)).?;
    try testing.expectEqualStrings(&boot.assignment.version_id.toText(), id);
    const second = bootOfWriter(8, 5, 2);
    try testing.expectEqualStrings(
        "another device writes this version",
        refusalTo(&site, &second, .token).text.slice(),
    );
    // The same one again, with the same process and with another.
    const next = bootOfWriter(9, 5, 1);
    try testing.expectEqual(first.id, site.grant(&next, .token).cache.id);
    try testing.expectEqual(null, site.layers.find(boot.identity.id));
    site.endProcess();
    try testing.expectEqual(first.id, site.grant(&next, .resumption).cache.id);
    try testing.expectEqual('w', try site.byteOf(site.layers.find(next.identity.id).?));
    site.endProcess();
    try testing.expectEqual(.cache_failed, refusalTo(&site, &second, .token).code);
    site.root = @splat(4);
    const above = refusalTo(&site, &next, .token);
    try testing.expectEqual(.cache_version, above.code);
    try testing.expectEqualStrings("the writes belong to another version", above.text.slice());
}

test "a layer that is sealed or discarded is taken from nobody who is there, and given to nobody meanwhile" {
    var site: Site = try .init(.{});
    defer site.deinit();
    var server: core.stream.Server = try .init(testing.allocator, .{
        .keys = .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) },
        .sessions_max = 1,
    });
    defer server.deinit(testing.allocator);
    const boot = maintained;
    _ = site.grant(&boot, .token).cache;
    putSession(&server, boot.identity.id, 1);
    const version_id = boot.assignment.version_id;
    try testing.expectEqual(
        .written,
        site.layers.holdVersion(version_id, &server, write_caches.heard_us),
    );
    try testing.expectEqualSlices(
        base.Uuid,
        &.{version_id},
        site.layers.writtenVersions(&server, write_caches.heard_us).constSlice(),
    );
    try testing.expectEqual(
        0,
        site.layers.writtenVersions(&server, write_caches.heard_us + 1).count,
    );
    try testing.expect(site.layers.find(boot.identity.id) != null);
    for ([_]write_caches.HoldAnswer{ .waiting, .held }) |answer| {
        try testing.expectEqual(
            answer,
            site.layers.holdVersion(version_id, &server, write_caches.heard_us + 1),
        );
        try testing.expectEqual(null, site.layers.find(boot.identity.id));
        site.endWorks();
    }
    const again = refusalTo(&site, &boot, .resumption);
    try testing.expectEqualStrings("the version is being sealed or discarded", again.text.slice());
    // Another process has it to itself now.
    var buffer: [store.files.name_size_max]u8 = undefined;
    try store.WriteLayer.remove(
        site.layers.files,
        try std.mem.print(&buffer, "layers/{f}", .{version_id}),
    );
    try testing.expectEqual(
        .held,
        site.layers.holdVersion(version_id, &server, write_caches.heard_us + 2),
    );
    site.layers.held_version = null;
    try testing.expectEqual(.cache_lost, refusalTo(&site, &boot, .resumption).code);
    _ = site.grant(&boot, .token).cache;
}

fn refOf(layer: *const write_caches.Layer, request_id: u32) core.stream.Server.WriteRef {
    return .{ .boot_id = layer.boot_id, .session_id = 1, .request_id = request_id };
}

fn carry(
    site: *Site,
    layer: *write_caches.Layer,
    request_id: u32,
    order: write_caches.Order,
) write_caches.WriteOutcome {
    return site.takeOrder(layer, refOf(layer, request_id), order);
}

fn writeAt(offset: u64, bytes: []const u8) write_caches.Order {
    return .{ .write = .{ .offset = offset, .bytes = bytes } };
}

const sector: [512]u8 = @splat('x');

test "a write that came during a sync is acknowledged by the next one" {
    var site: Site = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    const layer = site.layers.find(boot.identity.id).?;
    try testing.expectEqual(.waits, carry(&site, layer, 1, writeAt(0, &sector)));
    site.layers.noteWork(layer);
    site.layers.beginWorks();
    try testing.expectEqual(1, layer.syncing_count);
    // Two more arrive, and begin no sync of their own.
    for ([_]u32{ 2, 3 }) |id|
        try testing.expectEqual(.waits, carry(&site, layer, id, writeAt(4096, &sector)));
    try testing.expectEqual(layer, site.io.takeSync().?);
    site.layers.noteWork(layer);
    site.layers.beginWorks();
    try testing.expectEqual(null, site.io.takeSync());
    try testing.expectEqual(1, layer.syncing_count);
    try testing.expectEqual(.done, site.layers.endSync(layer));
    site.layers.release(layer);
    try testing.expectEqual(2, layer.waiting_count);
    try testing.expectEqual(0, layer.syncing_count);
    try testing.expectEqual(2, layer.waiting[0].request_id);
    try testing.expectEqual(3, layer.waiting[1].request_id);
    site.layers.noteWork(layer);
    site.layers.beginWorks();
    try testing.expectEqual(2, layer.syncing_count);
    try testing.expectEqual(.done, site.layers.endSync(layer));
    site.layers.release(layer);
    try testing.expectEqual(0, layer.waiting_count);
    // A flush with nothing to sync waits as well, and is ended at once.
    try testing.expectEqual(.waits, carry(&site, layer, 4, .flush));
    site.io.ended.clear();
    site.layers.noteWork(layer);
    site.layers.beginWorks();
    try testing.expectEqual(layer, site.io.takeSync().?);
    try testing.expectEqual(.done, site.layers.endSync(layer));
    site.layers.release(layer);
}

test "no more writes wait for a sync than a session may have, and later ones come again" {
    var site: Site = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    const layer = site.layers.find(boot.identity.id).?;
    for (0..layer.waiting.len) |id|
        try testing.expectEqual(.waits, carry(&site, layer, @intCast(id), writeAt(0, &sector)));
    try testing.expectEqual(.later, carry(&site, layer, 99, writeAt(0, &sector)));
    layer.waiting_count = 0;
}

test "a failed sync acknowledges nothing, and its layer serves nothing from then on" {
    var site: Site = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    const layer = site.layers.find(boot.identity.id).?;
    try testing.expectEqual(.waits, carry(&site, layer, 1, writeAt(0, &sector)));
    site.layers.noteWork(layer);
    site.layers.beginWorks();
    _ = site.io.takeSync();
    layer.result = error.DiskFailed;
    try testing.expectEqual(.cache_lost, site.layers.endSync(layer));
    site.layers.release(layer);
    try testing.expectEqual(.lost, layer.held().state);
    for ([_]write_caches.Order{ writeAt(0, &sector), .flush }) |order|
        try testing.expectEqual(.cache_lost, carry(&site, layer, 2, order).ended);
    var read: [512]u8 = undefined;
    try testing.expectError(error.Lost, layer.inner.read(&read, 0));
    // The device's next boot gets what is on the disk, not this layer.
    const next = bootOf(2, 1);
    _ = site.grant(&next, .token);
    const opened = site.layers.find(next.identity.id) orelse return;
    try testing.expect(!opened.inner.is_lost);
}

test "a layer that ends with its boot acknowledges at once, and a write beyond the disk never" {
    var site: Site = try .init(.{ .class = .edge });
    defer site.deinit();
    const boot = bootOf(1, 1);
    const cache = site.grant(&boot, .token).cache;
    try testing.expectEqual(.edge, cache.class);
    try testing.expect(cache.id & 1 == 1);
    const layer = site.layers.find(boot.identity.id).?;
    try testing.expectEqual(.done, carry(&site, layer, 1, writeAt(0, &sector)).ended);
    try testing.expectEqual(
        .beyond_the_end,
        carry(&site, layer, 2, writeAt(disk_size, &sector)).ended,
    );
    try testing.expectEqual(0, layer.waiting_count);
    try testing.expectEqual(.ok, layer.held().state);
    site.layers.noteWork(layer);
    site.layers.beginWorks();
    try testing.expectEqual(null, site.io.takeSync());
}

test "a layer is closed when its boot is gone or superseded, but not while a thread uses it" {
    for ([_]write_caches.CacheSettings{
        .{ .class = .edge },
        .{ .class = .edge_persistent },
    }) |wanted| {
        var site: Site = try .init(wanted);
        defer site.deinit();
        var table: core.boot.Table = try .init(testing.allocator, .{ .capacity = 4 });
        defer table.deinit(testing.allocator);
        const boot = bootOf(1, 1);
        _ = site.grant(&boot, .token).cache;
        const layer = site.layers.find(boot.identity.id).?;
        const ref = try table.insert(boot, 0);
        site.layers.tick(0, &table);
        try testing.expectEqual(layer, site.layers.find(boot.identity.id).?);
        try testing.expectEqual(1, site.layers.levels()[0]);
        site.layers.beginRead(layer);
        // What stays on the disk waits for the device's next boot.
        table.supersede(ref, 1);
        site.layers.tick(1, &table);
        try testing.expectEqual(
            wanted.class == .edge_persistent,
            site.layers.find(boot.identity.id) != null,
        );
        table.remove(ref);
        site.layers.tick(2, &table);
        try testing.expectEqual(null, site.layers.find(boot.identity.id));
        try testing.expectEqual(1, site.layers.top);
        site.layers.endRead(layer);
        site.endWorks();
        try testing.expectEqual(0, site.layers.top);
    }
}

test "a layer in a sync is closed when the sync has ended" {
    var site: Site = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    const layer = site.layers.find(boot.identity.id).?;
    _ = carry(&site, layer, 1, writeAt(0, &sector));
    site.layers.noteWork(layer);
    site.layers.beginWorks();
    layer.is_over = true;
    // Meanwhile the device's next boot has to wait.
    const next = bootOf(2, 1);
    try testing.expectEqual(.busy, site.grant(&next, .token).refused.code);
    _ = site.io.takeSync();
    try testing.expectEqual(.done, site.layers.endSync(layer));
    site.layers.release(layer);
    site.endWorks();
    try testing.expectEqual(0, site.layers.top);
    _ = site.grant(&next, .token).cache;
}

test "the fill level of a layer follows its use, and a closed one is full" {
    var site: Site = try .init(.{ .class = .edge, .limit_bytes = 20 * 4096 });
    defer site.deinit();
    var table: core.boot.Table = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    _ = try table.insert(boot, 0);
    const layer = site.layers.find(boot.identity.id).?;
    layer.inner.head.limit_bytes = 20 * 4096;
    const block: [4096]u8 = @splat('x');
    const Level = write_caches.FillLevel;
    for ([_]u8{ 15, 16 }, [_]Level{ .ok, .warning }) |blocks, level| {
        for (0..blocks) |number| _ = carry(&site, layer, 1, writeAt(4096 * number, &block));
        site.layers.tick(0, &table);
        try testing.expectEqual(level, layer.level);
    }
    // 95 %.
    layer.inner.head.limit_bytes = 68_985;
    site.layers.tick(0, &table);
    try testing.expectEqual(.critical, layer.level);
    layer.inner.head.limit_bytes = 16 * 4096 + 1;
    site.layers.tick(0, &table);
    try testing.expectEqual(.critical, layer.level);
    layer.inner.head.limit_bytes = 16 * 4096;
    site.layers.tick(0, &table);
    try testing.expectEqual(.full, layer.level);
    layer.inner.head.limit_bytes = 20 * 4096;
    layer.is_closed = true;
    site.layers.tick(0, &table);
    try testing.expectEqual(.full, layer.level);
    try testing.expectEqual([4]u64{ 0, 0, 0, 1 }, site.layers.levels());
}

test "an edge has as many layers as it has slots for, and frees them again" {
    var site: Site = try .init(.{ .class = .edge });
    defer site.deinit();
    for (1..6) |number| {
        var boot = bootOf(@intCast(number), 1);
        boot.assignment.device_id = .fromBytes(@splat(@intCast(number)));
        const granted = site.grant(&boot, .token);
        if (number == 5) {
            try testing.expectEqual(.cache_failed, granted.refused.code);
        } else try testing.expect(granted == .cache);
    }
    try testing.expectEqual(4, site.layers.top);
    const first = site.layers.find(.fromBytes(@splat(1))).?;
    const second = site.layers.find(.fromBytes(@splat(2))).?;
    try testing.expect(first.cache().id != second.cache().id);
    try testing.expect(site.layers.isAvailable());
    // The device's next boot makes a new layer of this class.
    var next = bootOf(9, 1);
    next.assignment.device_id = .fromBytes(@splat(4));
    _ = site.grant(&next, .token).cache;
    try testing.expectEqual(4, site.layers.top);
    try testing.expectEqual(null, site.layers.find(.fromBytes(@splat(4))));
}

test "an edge without a store keeps nobody's writes and has no private images" {
    var io: WorkingIo = .{};
    var layers: WriteCaches = .none(testing.allocator, &io);
    defer layers.deinit(testing.allocator);
    const boot = bootOf(1, 1);
    try testing.expect(!layers.isAvailable());
    try testing.expectEqual(null, layers.find(boot.identity.id));
}

test "a silent device's layer is closed if it stays on the disk and nothing uses it" {
    for ([_]write_caches.CacheSettings{
        .{ .class = .edge },
        .{ .class = .edge_persistent },
    }) |wanted| {
        var site: Site = try .init(wanted);
        defer site.deinit();
        var server: core.stream.Server = try .init(testing.allocator, .{
            .keys = .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) },
            .sessions_max = 1,
        });
        defer server.deinit(testing.allocator);
        const boot = bootOf(1, 1);
        _ = site.grant(&boot, .token).cache;
        const layer = site.layers.find(boot.identity.id).?;
        site.layers.beginRead(layer);
        site.layers.closeSilent(&server, 1 << 40);
        try testing.expectEqual(layer, site.layers.find(boot.identity.id).?);
        site.layers.endRead(layer);
        layer.waiting_count = 1;
        site.layers.closeSilent(&server, 1 << 40);
        try testing.expectEqual(layer, site.layers.find(boot.identity.id).?);
        layer.waiting_count = 0;
        site.layers.closeSilent(&server, 1 << 40);
        try testing.expectEqual(wanted.class == .edge, site.layers.find(boot.identity.id) != null);
    }
}

test "a layer held for a store job is given back when a thread has left it" {
    var site: Site = try .init(.{});
    defer site.deinit();
    var server: core.stream.Server = try .init(testing.allocator, .{
        .keys = .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) },
        .sessions_max = 1,
    });
    defer server.deinit(testing.allocator);
    const boot = maintained;
    _ = site.grant(&boot, .token).cache;
    const version_id = boot.assignment.version_id;
    const layer = site.layers.find(boot.identity.id).?;
    site.layers.beginRead(layer);
    try testing.expectEqual(.waiting, site.layers.holdVersion(version_id, &server, 1 << 40));
    try testing.expectEqual(0, site.layers.writtenVersions(&server, 1 << 40).count);
    site.layers.endRead(layer);
    try testing.expectEqual(.waiting, site.layers.holdVersion(version_id, &server, 1 << 40));
    site.endWorks();
    try testing.expectEqual(0, site.layers.top);
    try testing.expectEqual(.held, site.layers.holdVersion(version_id, &server, 1 << 40));
    // Another version's device is not concerned.
    const other = bootOfWriter(8, 6, 2);
    try testing.expect(site.grant(&other, .token) == .cache);
}

test "a layer that goes on reads the disk that its version has now" {
    var site: Site = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    const layer = site.layers.find(boot.identity.id).?;
    var opened_again = site.disk;
    for ([_]core.boot.Boot{ boot, bootOf(2, 1) }) |next| {
        layer.inner.below.context = &site.disk;
        var below = site.source();
        below.context = &opened_again;
        const granted = site.grantAbove(&next, below, site.wanted, .resumption);
        try testing.expect(granted == .cache);
        try testing.expectEqual(@as(*anyopaque, &opened_again), layer.inner.below.context);
    }
}

test "a device whose writes are kept resumes after the edge's end" {
    var site: Site = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    var boot = bootOf(1, 1);
    const first = site.grant(&boot, .token).cache;
    boot.token_nonce = @splat(1);
    site.endProcess();
    try testing.expectEqual(0, site.layers.top);
    try testing.expectEqual(first.id, site.grant(&boot, .resumption).cache.id);
    try testing.expectEqual(1, site.layers.top);
}

test "a version without a layer is held as well, and another version's layer is left alone" {
    var site: Site = try .init(.{});
    defer site.deinit();
    var server: core.stream.Server = try .init(testing.allocator, .{
        .keys = .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) },
        .sessions_max = 1,
    });
    defer server.deinit(testing.allocator);
    const other = bootOfWriter(8, 6, 2);
    _ = site.grant(&other, .token).cache;
    const version_id = maintained.assignment.version_id;
    try testing.expectEqual(.held, site.layers.holdVersion(version_id, &server, 1 << 40));
    try testing.expect(site.layers.find(other.identity.id) != null);
    try testing.expectEqualStrings(
        "the version is being sealed or discarded",
        refusalTo(&site, &maintained, .token).text.slice(),
    );
}

test "a device's next boot takes what was chosen meanwhile, and waits for no earlier write" {
    var site: Site = try .init(.{ .class = .edge_persistent, .full = .stop });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    const layer = site.layers.find(boot.identity.id).?;
    try testing.expectEqual(.waits, carry(&site, layer, 1, writeAt(0, &sector)));
    site.wanted.full = .read_only;
    const next = bootOf(2, 1);
    _ = site.grant(&next, .token).cache;
    try testing.expectEqual(layer, site.layers.find(next.identity.id).?);
    try testing.expectEqual(.read_only, layer.full);
    try testing.expectEqual(0, layer.waiting_count);
}

test "two devices that no desired state names have layers of their own" {
    var site: Site = try .init(.{ .class = .edge_persistent });
    defer site.deinit();
    const boot = bootOf(1, 1);
    const first = site.grant(&boot, .token).cache;
    var other = bootOf(2, 1);
    other.identity.mac.bytes[5] = 10;
    try testing.expect(site.grant(&other, .token).cache.id != first.id);
    try testing.expect(site.layers.find(boot.identity.id) != null);
}
