//! Tests what the simulated files guarantee to tests.

const std = @import("std");
const store = @import("store");
const SimFiles = @import("sim_files.zig");
const testing = std.testing;

/// Trials of a random outcome of a crash; all outcomes have occurred by then.
const rounds = 200;

test "files are created, read, renamed, listed in order and removed" {
    var sim: SimFiles = try .init(testing.allocator, 1);
    defer sim.deinit();
    const dir = sim.files();
    try dir.makeDir("sub");
    try testing.expectError(error.Exists, dir.makeDir("sub"));
    try testing.expectError(error.NotFound, dir.open("sub/a", .read));
    for ([_][]const u8{ "sub/c", "sub/a", "sub/b" }) |name| {
        const handle = try dir.create(name);
        defer dir.close(handle);
        try dir.write(handle, name, 4096);
    }
    try testing.expectError(error.Exists, dir.create("sub/a"));
    try dir.rename("sub/c", "sub/a");
    var name: store.files.Name = undefined;
    try testing.expectEqualStrings("a", (try dir.nextName("sub", "", &name)).?);
    try testing.expectEqualStrings("b", (try dir.nextName("sub", "a", &name)).?);
    try testing.expectEqual(null, try dir.nextName("sub", "b", &name));
    const handle = try dir.open("sub/a", .write);
    defer dir.close(handle);
    var buffer: [16]u8 = undefined;
    try testing.expectEqual(5, try dir.read(handle, &buffer, 4096));
    try testing.expectEqualStrings("sub/c", buffer[0..5]);
    try testing.expectEqual(4096, try dir.nextData(handle, 7));
    try testing.expectEqual(4096, try dir.allocated(handle));
    try dir.punch(handle, 4096, 4096);
    try testing.expectEqual(5, (try dir.size(handle)) - 4096);
    try testing.expectEqual(null, try dir.nextData(handle, 4097));
    try dir.setSize(handle, 3);
    try testing.expectEqual(3, try dir.size(handle));
    try testing.expectError(error.Exists, dir.remove("sub"));
    const second = try dir.open("sub/a", .write);
    try testing.expect(try dir.tryLock(handle, true));
    try testing.expect(!try dir.tryLock(second, false));
    sim.endProcess();
    const third = try dir.open("sub/a", .read);
    try testing.expect(try dir.tryLock(third, true));
    try testing.expectError(error.Denied, dir.write(third, "x", 0));
    try dir.remove("sub/a");
    try dir.remove("sub/b");
    try dir.remove("sub");
}

test "synced data is there after a crash, and other data is the old or the new, sector by sector" {
    var seen_old = false;
    var seen_new = false;
    var seen_mixture = false;
    var seen_between = false;
    for (0..rounds) |seed| {
        var sim: SimFiles = try .init(testing.allocator, seed);
        defer sim.deinit();
        const dir = sim.files();
        const handle = try dir.create("f");
        try dir.write(handle, &@as([2048]u8, @splat('a')), 0);
        try dir.sync(handle);
        try dir.syncDir("");
        try dir.write(handle, &@as([1024]u8, @splat('b')), 512);
        try dir.write(handle, &@as([1024]u8, @splat('c')), 512);
        sim.crash();
        const again = try dir.open("f", .read);
        var bytes: [2048]u8 = undefined;
        try testing.expect(try dir.readWhole(again, &bytes, 0));
        for (bytes[0..512]) |byte| try testing.expectEqual('a', byte);
        for (bytes[1536..]) |byte| try testing.expectEqual('a', byte);
        for ([_]usize{ 512, 1024 }) |at|
            for (bytes[at..][0..512]) |byte| try testing.expectEqual(bytes[at], byte);
        const first, const second = .{ bytes[512], bytes[1024] };
        seen_old = seen_old or (first == 'a' and second == 'a');
        seen_new = seen_new or (first == 'c' and second == 'c');
        seen_mixture = seen_mixture or first != second;
        seen_between = seen_between or first == 'b';
    }
    try testing.expect(seen_old);
    try testing.expect(seen_new);
    try testing.expect(seen_mixture);
    try testing.expect(seen_between);
}

test "a name is there after a crash if its directory was synced; a rename is complete or did not happen" {
    var seen_lost = false;
    var seen_kept = false;
    var seen_old = false;
    var seen_new = false;
    for (0..rounds) |seed| {
        var sim: SimFiles = try .init(testing.allocator, seed);
        defer sim.deinit();
        const dir = sim.files();
        const old = try dir.create("head");
        try dir.write(old, "old", 0);
        try dir.sync(old);
        try dir.syncDir("");
        const new = try dir.create("head.new");
        try dir.write(new, "new", 0);
        try dir.sync(new);
        try dir.rename("head.new", "head");
        _ = try dir.create("other");
        sim.crash();
        const head = try dir.open("head", .read);
        var bytes: [3]u8 = undefined;
        try testing.expect(try dir.readWhole(head, &bytes, 0));
        if (std.mem.eql(u8, &bytes, "old")) seen_old = true else {
            try testing.expectEqualStrings("new", &bytes);
            try testing.expectError(error.NotFound, dir.open("head.new", .read));
            seen_new = true;
        }
        if (dir.open("other", .read)) |_| seen_kept = true else |_| seen_lost = true;
    }
    try testing.expect(seen_old);
    try testing.expect(seen_new);
    try testing.expect(seen_kept);
    try testing.expect(seen_lost);
}

test "a full disk, one failing operation and a machine that stops" {
    var sim: SimFiles = try .init(testing.allocator, 3);
    defer sim.deinit();
    const dir = sim.files();
    const handle = try dir.create("f");
    sim.capacity = 8192;
    try dir.write(handle, &@as([8192]u8, @splat('x')), 0);
    try testing.expectEqual(0, try dir.freeBytes());
    try testing.expectError(error.NoSpace, dir.write(handle, "y", 8192));
    try dir.write(handle, "y", 0);
    sim.fail_at = sim.operations;
    try testing.expectError(error.DiskFailed, dir.sync(handle));
    try dir.sync(handle);
    sim.stop_after = sim.operations + 1;
    try dir.write(handle, "z", 0);
    try testing.expectError(error.DiskFailed, dir.write(handle, "z", 1));
    try testing.expectError(error.DiskFailed, dir.syncDir(""));
    sim.crash();
    try dir.syncDir("");
}
