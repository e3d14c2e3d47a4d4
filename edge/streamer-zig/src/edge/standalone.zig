//! Prepares what an edge without a control plane serves: one file, or one version of a store.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const host = @import("host");
const options_module = @import("options.zig");
const complaint_module = @import("complaint.zig");
const edge_store = @import("edge_store.zig");
const Edge = @import("edge.zig");
const SourceImage = @import("source_image.zig");

const Complaint = options_module.Complaint;
const Error = complaint_module.Error || error{OutOfMemory};
const StoreFile = store.StoreFile;

pub fn prepareFile(edge: *Edge, complaint: *Complaint) Error!void {
    const options = &edge.options;
    const path = options.vdisk.?;
    var disk = try openFile(path, .disk, complaint);
    if (SourceImage.containerOf(&disk)) |format| return complaint.set(
        "{s} is {s}, and a file is served as it is. Import it into a store (bootfarm-edge vdisk import) and serve that, or convert it to raw.",
        .{ path, format.name() },
    );
    if (host.disk_check.findShortage(&disk.source())) |shortage| return complaint.set(
        "{s} is smaller than its contents: {f}; import the whole image again.",
        .{ path, shortage },
    );
    var version: host.version_table.Version =
        .{ .id = standaloneId(path, &disk), .disk = .{ .file = disk } };
    if (options.kernel) |kernel| version.kernel = try openFile(kernel, .plain, complaint);
    if (options.initrd) |initrd| version.initrd = try openFile(initrd, .plain, complaint);
    if (options.kernel) |kernel| try checkKernel(&version, kernel, options.initrd, complaint);
    version.setCommandLine(options.cmdline);
    edge.io.versions.add(version) catch unreachable;
    edge.boots.policy = .standalone(.{
        .assignment = .{
            .version_id = version.id,
            .loader_files = .{ .kernel = version.kernel != null, .initrd = version.initrd != null },
        },
        .command_line = options.cmdline,
    });
}

/// Prepares a version of the store with its kernel, initramfs and command line.
pub fn prepareVersion(edge: *Edge, id: base.Uuid, complaint: *Complaint) Error!void {
    try edge_store.open(edge, complaint);
    var problem: host.version_table.Problem = undefined;
    const version = host.version_table.openStored(
        edge.io.versions.store,
        edge.io.store_fd.?,
        id,
        null,
        &problem,
    ) catch return complaint.set("{s}: {f}.", .{ edge.options.store.?, problem });
    if (version.disk_shortage) |shortage| return complaint.set(
        "The version {f} is smaller than its contents: {f}; import the whole image again.",
        .{ id, shortage },
    );
    edge.io.versions.add(version) catch unreachable;
    // Valid as long as the edge runs: the policy refers to it.
    const command_line = edge.io.versions.find(id).?.commandLine();
    edge.boots.policy = .standalone(.{
        .assignment = .{
            .version_id = id,
            .loader_files = .{ .kernel = version.kernel != null, .initrd = version.initrd != null },
        },
        .command_line = command_line,
    });
}

/// Checks the kernel and initramfs: a device that gets files which cannot work shows nothing
/// useful.
fn checkKernel(
    version: *host.version_table.Version,
    kernel_path: []const u8,
    initrd_path: ?[]const u8,
    complaint: *Complaint,
) Error!void {
    const initrd = if (version.initrd) |*file| file else null;
    const files = host.loader_files.inspect(&version.kernel.?, initrd) catch |problem|
        return complaint.set("{s} {s}.", .{ kernel_path, host.loader_files.sentence(problem) });
    version.loader_files = files;
    const blocker = core.loader.kernel_fit.judge(&files, null) orelse return;
    return complaint.set(
        "{s} does not belong to {s}: {s}; build it again with bootfarm-edge initramfs build.",
        .{ initrd_path.?, kernel_path, blocker.text.slice() },
    );
}

fn openFile(path: []const u8, kind: store.store_file.Kind, complaint: *Complaint) Error!StoreFile {
    return StoreFile.open(path, kind) catch |problem|
        complaint.set("{s} {s}.", .{ path, store.store_file.sentence(problem, kind) });
}

/// Returns the same id for an unchanged file at every start, so that devices continue after a
/// restart.
fn standaloneId(path: []const u8, disk: *const StoreFile) base.Uuid {
    var hash: base.Sha256 = .init(.{});
    hash.update(path);
    hash.update(std.mem.asBytes(&disk.size));
    hash.update(std.mem.asBytes(&disk.modified_ns));
    var digest: [32]u8 = undefined;
    hash.final(&digest);
    return .fromRandom(digest[0..16].*);
}
