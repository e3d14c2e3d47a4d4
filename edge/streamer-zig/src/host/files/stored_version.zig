//! Opens a version of the store with the kernel and initramfs that it boots with. Refuses, with the
//! reason, what differs from what was sealed or from what the control plane describes.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");

const Manifest = store.Manifest;
const StoreFile = store.StoreFile;

/// `NoStore`: the edge's store directory has only plain files. `OtherBytes`, `Older`: compared with
/// what the control plane describes.
pub const Error =
    error{
        NoStore,
        Missing,
        Damaged,
        NotReadable,
        InUse,
        OtherBytes,
        Older,
        KernelDamaged,
        KernelMissing,
    };

pub const StoredVersion = struct {
    version: store.OpenVersion,
    kernel: ?StoreFile,
    initrd: ?StoreFile,
};

/// @param expected what the desired state describes; null: accept what the store has
pub fn open(
    from: *store.Store,
    store_fd: i32,
    id: base.Uuid,
    expected: ?*const core.uplink.desired_state.Manifest,
) Error!StoredVersion {
    var version = from.openVersion(id) catch |err| return switch (err) {
        error.NotFound => error.Missing,
        error.Locked => error.InUse,
        error.NotAManifest,
        error.Damaged,
        error.WrongSignature,
        error.Malformed,
        error.OtherStore,
        error.OtherName,
        error.TooNew,
        => error.Damaged,
        else => error.NotReadable,
    };
    errdefer version.close();
    if (expected) |wanted| try check(&version.manifest, wanted);
    var kernel = try openBootFile(from, store_fd, version.manifest.kernel);
    errdefer if (kernel) |*file| file.close();
    return .{
        .version = version,
        .kernel = kernel,
        .initrd = try openBootFile(from, store_fd, version.manifest.initrd),
    };
}

fn check(manifest: *const Manifest, wanted: *const core.uplink.desired_state.Manifest) Error!void {
    if (manifest.counter < wanted.counter) return error.Older;
    if (!std.mem.eql(u8, &manifest.root.hash, &wanted.rootHash())) return error.OtherBytes;
}

fn openBootFile(
    from: *store.Store,
    store_fd: i32,
    wanted: ?store.manifest.BootFile,
) Error!?StoreFile {
    const file = wanted orelse return null;
    store.boot_bundle.check(from.files, &file) catch |err| return switch (err) {
        error.NotFound => error.KernelMissing,
        error.OtherSize, error.Damaged => error.KernelDamaged,
        else => error.NotReadable,
    };
    var name: store.files.Name = undefined;
    return StoreFile.openBelow(store_fd, store.boot_bundle.nameOf(&file, &name), .plain) catch
        error.NotReadable;
}

/// Describes the problem as the end of a sentence that begins with "version ID".
pub fn sentence(problem: Error) []const u8 {
    return switch (problem) {
        error.NoStore => "needs a store, and there is none: run vdisk init",
        error.Missing => "is not in the store",
        error.Damaged => "is damaged in the store",
        error.NotReadable => "cannot be read from the store",
        error.InUse => "is being deleted from the store",
        error.OtherBytes => "differs from what the control plane describes",
        error.Older => "is older than what the control plane describes",
        error.KernelDamaged => "has a damaged kernel or initramfs",
        error.KernelMissing => "has lost its kernel or initramfs",
    };
}

const testing = std.testing;

test "a version of the store is opened if it matches the control plane's description, and otherwise refused with the reason" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: store.LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    try store.Store.make(files, .{ .id = .fromRandom(@splat(1)), .seed = @splat(5) });
    var from: store.Store = try .open(testing.allocator, files, .{ .cache_nodes = 16 });
    defer from.close(testing.allocator);
    const id: base.Uuid = .fromRandom(@splat(3));
    var change = try from.lockForChange();
    try change.commit(&.{
        .store = from.id,
        .organization = .zero,
        .vdisk = .fromRandom(@splat(2)),
        .version = id,
        .parent = .zero,
        .number = 1,
        .incarnation = 0,
        .counter = 7,
        .created_unix_ms = 0,
        .disk_size = 1 << 20,
        .root = .zeros,
        .kernel = .{ .hash = @splat(9), .size = 4 },
    });
    change.end();
    const fd = tmp.dir.handle;
    const zeros = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const others = "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA=";
    try testing.expectError(error.Missing, open(&from, fd, .fromRandom(@splat(4)), null));
    try testing.expectError(error.Older, open(&from, fd, id, &.{ .root = zeros, .counter = 8 }));
    try testing.expectError(
        error.OtherBytes,
        open(&from, fd, id, &.{ .root = others, .counter = 7 }),
    );
    try testing.expectError(
        error.KernelMissing,
        open(&from, fd, id, &.{ .root = zeros, .counter = 7 }),
    );
    var name: store.files.Name = undefined;
    const manifest =
        try files.open(try std.mem.print(&name, "versions/{f}.manifest", .{id}), .write);
    defer files.close(manifest);
    try files.write(manifest, "x", 100);
    try testing.expectError(error.Damaged, open(&from, fd, id, null));
}
