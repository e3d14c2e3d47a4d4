//! `bootfarm-edge vdisk show`: describes a version.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const Call = @import("subcommand.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const Manifest = store_module.Manifest;
const Size = output.Size;

pub const Options = struct {
    version: ?Uuid = null,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const id = try call.need(options.version, "--version ID");
    const manifest = call.store().manifestOf(id) catch |err| return call.failVersion(id, err);
    call.print(output.Version{ .manifest = &manifest }, "{f}", .{
        VersionText{ .manifest = &manifest },
    });
    return 0;
}

const VersionText = struct {
    manifest: *const Manifest,

    pub fn format(shown: VersionText, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        return writeText(writer, shown.manifest);
    }
};

fn writeText(writer: *std.Io.Writer, manifest: *const Manifest) std.Io.Writer.Error!void {
    try writer.print("version       {f}, number {d}\nvDisk         {f} {s}\n", .{
        manifest.version, manifest.number, manifest.vdisk, manifest.name.constSlice(),
    });
    if (manifest.note.count > 0)
        try writer.print("note          {s}\n", .{manifest.note.constSlice()});
    if (manifest.isBase()) try writer.writeAll(
        "parent        none: a base\n",
    ) else try writer.print("parent        {f}\n", .{manifest.parent});
    try writer.print(
        "made          {f}\nsize          {f} ({d} bytes)\nroot          {x}, counter {d}",
        .{
            output.Instant{ .unix_ms = manifest.created_unix_ms },
            Size{ .bytes = manifest.disk_size },
            manifest.disk_size,
            &manifest.root.hash,
            manifest.counter,
        },
    );
    for ([_]?store_module.manifest.BootFile{
        manifest.kernel,
        manifest.initrd,
    }, [_][]const u8{ "kernel", "initrd" }) |file, name| {
        const given = file orelse continue;
        try writer.print("\n{s:<14}{f}, SHA-256 {x}", .{
            name, Size{ .bytes = given.size }, &given.hash,
        });
    }
    if (manifest.kernel != null)
        try writer.print("\ncommand line  {s}", .{manifest.command_line.constSlice()});
}
