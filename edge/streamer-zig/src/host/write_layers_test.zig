//! Write layers of boots on a real directory.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const write_layers = @import("write_layers.zig");
const testing = std.testing;
const WriteLayers = write_layers.WriteLayers;

const disk_size = 64 << 10;

const Site = struct {
    tmp: testing.TmpDir,
    disk: store.StoreFile,
    layers: WriteLayers,

    fn init(wanted: write_layers.Wanted) !Site {
        var tmp = testing.tmpDir(.{});
        try tmp.dir.writeFile(testing.io, .{ .sub_path = "disk", .data = &@as([disk_size]u8, @splat('b')) });
        var layers: WriteLayers = try .init(testing.allocator, tmp.dir.handle, 4, wanted);
        try layers.start();
        return .{ .tmp = tmp, .disk = try .openBelow(tmp.dir.handle, "disk", .disk), .layers = layers };
    }

    fn deinit(site: *Site) void {
        site.endProcess();
        testing.allocator.free(site.layers.layers);
        site.disk.close();
        site.tmp.cleanup();
    }

    /// What the end of the process does: files are closed, and nothing is synced.
    fn endProcess(site: *Site) void {
        for (site.layers.layers) |*place| if (place.*) |layer| {
            layer.inner.close(testing.allocator);
            testing.allocator.destroy(layer);
            place.* = null;
        };
        site.layers.top = 0;
    }

    fn grant(site: *Site, boot: *const core.boot.Boot, kind: @import("wire").stream.HelloKind) WriteLayers.Granted {
        return site.layers.grant(boot, site.source(), site.layers.wanted, kind);
    }

    fn source(site: *Site) store.BlockSource {
        return .{ .context = &site.disk, .vtable = &.{ .read = readFile }, .size = site.disk.size };
    }

    fn readFile(context: *anyopaque, buffer: []u8, offset: u64) store.block_source.ReadError!void {
        const disk: *const store.StoreFile = @ptrCast(@alignCast(context));
        return disk.read(buffer, offset);
    }

    fn write(site: *Site, layer: *write_layers.Layer, byte: u8) !@import("wire").stream.WriteCode {
        const bytes: [512]u8 = @splat(byte);
        const ref: core.StreamServer.WriteRef = .{ .boot_id = layer.boot_id, .session_id = 1, .request_id = 1 };
        switch (site.layers.carryOut(layer, ref, .{ .write = .{ .offset = 512, .bytes = &bytes } })) {
            .ended => |code| return code,
            .later => return error.Later,
            .waits => {},
        }
        site.layers.beginSyncs();
        var polled = [_]std.os.linux.pollfd{.{ .fd = site.layers.endedFd(), .events = std.os.linux.POLL.IN, .revents = 0 }};
        _ = std.os.linux.poll(&polled, 1, 30_000);
        const ended = site.layers.takeEnded() orelse return error.NoEnd;
        site.layers.release(ended.layer);
        return ended.code;
    }

    fn byteOf(site: *Site, layer: *write_layers.Layer) !u8 {
        _ = site;
        var bytes: [1024]u8 = undefined;
        try layer.inner.read(&bytes, 0);
        try testing.expectEqual('b', bytes[0]);
        return bytes[1023];
    }
};

fn bootOf(id: u8, version: u8) core.boot.Boot {
    return .init(
        .{ .id = .fromBytes(@splat(id)), .mac = .{ .bytes = .{ 2, 0, 0, 0, 0, 9 } }, .handle = 1, .token = @splat(1) },
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
    const other = bootOf(3, 2);
    try testing.expectEqual(.cache_version, site.grant(&other, .token).refused);
    site.layers.wanted.of_another_version = .discard;
    const new = site.grant(&other, .token).cache;
    try testing.expect(new.id != first.id);
    try testing.expectEqual('b', try site.byteOf(site.layers.find(other.identity.id).?));
}

test "a device that was served with a write cache never goes on without it" {
    for ([_]write_layers.Wanted{ .{ .class = .edge }, .{ .class = .edge_persistent } }) |wanted| {
        var site: Site = try .init(wanted);
        defer site.deinit();
        var boot = bootOf(1, 1);
        _ = site.grant(&boot, .token).cache;
        boot.token_nonce = @splat(1);
        try testing.expectEqual(.done, try site.write(site.layers.find(boot.identity.id).?, 'w'));
        site.endProcess();
        var name: store.files.Name = undefined;
        if (wanted.class == .edge) {
            try testing.expectEqual(null, try site.layers.files.files().nextName("layers", "", &name));
        } else {
            const id = (try site.layers.files.files().nextName("layers", "", &name)).?;
            var buffer: [store.files.name_size_max]u8 = undefined;
            try store.WriteLayer.remove(site.layers.files.files(), try std.mem.print(&buffer, "layers/{s}", .{id}));
        }
        try testing.expectEqual(.cache_lost, site.grant(&boot, .resumption).refused);
    }
}

test "a write cache that is full says so, and keeps what it has" {
    var site: Site = try .init(.{ .class = .edge, .limit_bytes = 4096 });
    defer site.deinit();
    const boot = bootOf(1, 1);
    _ = site.grant(&boot, .token).cache;
    const layer = site.layers.find(boot.identity.id).?;
    try testing.expectEqual(.done, try site.write(layer, 'w'));
    const bytes: [4096]u8 = @splat('x');
    const order: WriteLayers.Order = .{ .write = .{ .offset = 8192, .bytes = &bytes } };
    const ref: core.StreamServer.WriteRef = .{ .boot_id = boot.identity.id, .session_id = 1, .request_id = 2 };
    try testing.expectEqual(.cache_full, site.layers.carryOut(layer, ref, order).ended);
    try testing.expectEqual('w', try site.byteOf(layer));
}

test "with the write cache in the device nothing is made" {
    var site: Site = try .init(.{});
    defer site.deinit();
    const boot = bootOf(1, 1);
    try testing.expectEqual(.none, site.grant(&boot, .token));
}
