//! `bootfarm-edge vdisk show`: what a version is.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const arguments = @import("arguments.zig");
const command = @import("command.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const Manifest = store_module.Manifest;
const Size = output.Size;

const Options = struct {
    store: ?[]const u8 = null,
    version: ?Uuid = null,
    json: bool = false,
};

pub fn run(call: *const command.Call) command.Error!u8 {
    const options = try arguments.parse(Options, call.rest, call.complaint);
    const gpa = call.init.gpa;
    var opened: open_store.OpenStore = undefined;
    try opened.open(gpa, options.store, call.complaint);
    defer opened.close(gpa);
    const id = options.version orelse return call.complaint.set("vdisk show needs --version ID.", .{});
    const manifest = opened.store.manifestOf(id) catch |err|
        return open_store.complainOfVersion(opened.path, id, err, call.complaint);
    var buffer: [8192]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    (if (options.json) writeJson(&writer, &manifest) else writeText(&writer, &manifest)) catch return error.OutOfMemory;
    call.terminal.out(writer.buffered());
    return 0;
}

fn writeJson(writer: *std.Io.Writer, manifest: *const Manifest) std.Io.Writer.Error!void {
    var json: std.json.Stringify = .{ .writer = writer };
    try output.writeVersion(&json, manifest);
    try writer.writeByte('\n');
}

fn writeText(writer: *std.Io.Writer, manifest: *const Manifest) std.Io.Writer.Error!void {
    try writer.print("version       {f}, number {d}\nvDisk         {f} {s}\n", .{
        manifest.version,
        manifest.number,
        manifest.vdisk,
        manifest.name.constSlice(),
    });
    if (manifest.isBase()) try writer.writeAll("parent        none: a base\n") else try writer.print("parent        {f}\n", .{manifest.parent});
    try writer.print("made          {f}\nsize          {f} ({d} bytes)\nroot          {x}, counter {d}\n", .{
        output.Instant{ .unix_ms = manifest.created_unix_ms },
        Size{ .bytes = manifest.disk_size },
        manifest.disk_size,
        &manifest.root.hash,
        manifest.counter,
    });
    for ([_]?store_module.manifest.BootFile{ manifest.kernel, manifest.initrd }, [_][]const u8{ "kernel", "initrd" }) |file, name| {
        const given = file orelse continue;
        try writer.print("{s:<14}{f}, SHA-256 {x}\n", .{ name, Size{ .bytes = given.size }, &given.hash });
    }
    if (manifest.kernel != null) try writer.print("command line  {s}\n", .{manifest.command_line.constSlice()});
}
