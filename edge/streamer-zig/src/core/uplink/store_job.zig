//! One store job (packages/proto/UPLINK.md, "Jobs"): the command line of the process that executes
//! it, `bootfarm-edge vdisk KIND --json`, and the parser of that process's output, one JSON object
//! per line (docs/reference/vdisk-store.md). The process is our own program; its output is bounded
//! and checked all the same.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const difference_order = @import("difference_order.zig");
const import_source = @import("import_source.zig");
const key_text = @import("key_text.zig");
const assert = std.debug.assert;

pub const Order = desired_state.StoreJob;

/// The kinds that this edge announces to the control plane.
pub const Kind = enum {
    seal,
    merge,
    import,
    verify,
    gc,
    delete,
    drop_layer,
    clear_profile,
    release_home,
    adopt,
    @"export",
    pack,
    fetch,
};

pub const message_size_max = 256;
/// Drivers that an import adds to its initramfs.
const modules_max = 16;
const module_name_size_max = 56;
/// Exit code of a process that could not get a lock: its job is executed later.
pub const exit_busy = 4;
/// Bytes of a note, as in a manifest.
pub const note_size_max = 512;
/// Size of `madeVersion` as JSON: a command line and a note whose characters are all escaped, and
/// less than 512 bytes of the rest.
pub const made_size_max = 2 * (desired_state.command_line_size_max + note_size_max) + 512;
/// Longer lines are not read.
pub const line_size_max = 6 << 10;
const number_max = (1 << 53) - 1;
/// The last instant that the control plane can represent.
const unix_ms_max = 8_640_000_000_000_000;

pub const Message = base.BoundedArray(u8, message_size_max);
pub const Made = base.BoundedArray(u8, made_size_max);

/// Arguments of `bootfarm-edge`, each ended by a zero byte.
pub const Arguments = struct {
    buffer: [buffer_size]u8 = undefined,
    size: u16 = 0,
    words: [words_max:null]?[*:0]const u8 = @splat(null),
    count: u8 = 0,

    const words_max = 32;
    const buffer_size = 8192;

    /// Maximum length of the store's path.
    pub const store_path_size_max = 2048;

    pub fn add(arguments: *Arguments, comptime format: []const u8, values: anytype) void {
        assert(arguments.count < words_max);
        var writer: std.Io.Writer = .fixed(arguments.buffer[arguments.size..]);
        // The longest paths and command line fit.
        writer.print(format ++ "\x00", values) catch unreachable;
        arguments.words[arguments.count] = @ptrCast(arguments.buffer[arguments.size..].ptr);
        arguments.count += 1;
        arguments.size += @intCast(writer.end);
        assert(arguments.size <= buffer_size);
    }

    fn addOption(
        arguments: *Arguments,
        comptime name: []const u8,
        comptime format: []const u8,
        value: anytype,
    ) void {
        const given = value orelse return;
        arguments.add("--" ++ name, .{});
        arguments.add(format, .{given});
    }

    pub fn word(arguments: *const Arguments, index: usize) []const u8 {
        return std.mem.span(arguments.words[index].?);
    }
};

/// Returns why a job cannot start, for a person; null: `arguments` hold the command. Each may be
/// run again after any end.
pub fn write(
    arguments: *Arguments,
    program: []const u8,
    store_path: []const u8,
    order: *const Order,
) ?[]const u8 {
    const kind = std.meta.stringToEnum(Kind, order.kind) orelse
        return "this edge does not do work of this kind; another version of it may";
    if (problemOf(order, kind)) |problem| return problem;
    begin(arguments, program, switch (kind) {
        .drop_layer => "drop-cache",
        .clear_profile => "profile",
        // A version describes itself; the job only has to verify and report it.
        .adopt => "verify",
        // What was fetched is imported.
        .fetch => "import",
        else => @tagName(kind),
    }, store_path);
    addOptions(arguments, order, kind, store_path);
    assert(arguments.count > 0);
    return null;
}

fn makesVersion(kind: Kind) bool {
    return kind == .seal or kind == .merge or kind == .import;
}

fn problemOf(order: *const Order, kind: Kind) ?[]const u8 {
    if (makesVersion(kind)) {
        const number = order.number orelse
            return "it does not say which number the version is to have";
        if (number == 0 or number > std.math.maxInt(u32)) return "no version can have its number";
    }
    switch (kind) {
        .gc, .verify => {},
        // Executed by the edge itself, which knows its state.
        .release_home => return "it does not say whose writes to let go of",
        .drop_layer => {
            _ = order.deviceId orelse return "it does not say which device's writes to drop";
            const class = order.layerClass orelse
                return "it does not say which class of writes to drop";
            if (std.meta.stringToEnum(enum { edge_persistent, private }, class) == null)
                return "this edge keeps no writes of that class";
        },
        .delete => _ = order.versionId orelse return "it does not say which version to delete",
        .adopt => _ = order.versionId orelse return "it does not say which version to take up",
        .@"export" => {
            _ = order.versionId orelse return "it does not say which version to export";
            const format = order.format orelse return "it does not say in which format";
            if (std.meta.stringToEnum(enum { raw, qcow2, vhdx }, format) == null)
                return "this edge does not write that format";
        },
        .pack, .fetch => if (difference_order.problemOf(order)) |problem| return problem,
        .clear_profile => _ = order.versionId orelse
            return "it does not say of which version to clear the boot profile",
        .merge => {
            _ = order.versionId orelse return "it does not say which version to merge";
            _ = order.intoVersionId orelse return "it does not say which version to make";
        },
        .seal => {
            _ = order.versionId orelse return "it does not say which version to seal";
            _ = order.parentVersionId orelse return "it does not say what the version lies above";
        },
        .import => {
            _ = order.versionId orelse return "it does not say which version to make";
            _ = order.vdiskId orelse return "it does not say whose version it is to be";
            if (import_source.problemOf(order)) |problem| return problem;
            if (!areModules(order.modules)) return "it names a module that none can be called";
        },
    }
    for ([_]?[]const u8{ order.kernelPath, order.initrdPath }) |path|
        if (path) |given| if (import_source.pathProblem(given)) |problem| return problem;
    return null;
}

fn addDifference(arguments: *Arguments, order: *const Order, store_path: []const u8) void {
    const id = order.differenceId.?;
    arguments.add("{s}/{s}/{f}", .{ store_path, difference_order.folder, id });
}

fn addOptions(
    arguments: *Arguments,
    order: *const Order,
    kind: Kind,
    store_path: []const u8,
) void {
    assert(arguments.count > 0);
    assert(problemOf(order, kind) == null);
    switch (kind) {
        .gc, .verify, .adopt, .clear_profile => {},
        else => arguments.add("--again", .{}),
    }
    switch (kind) {
        .release_home => {},
        .pack => {
            addDifference(arguments, order, store_path);
            arguments.addOption("version", "{f}", order.versionId);
            arguments.addOption("base", "{f}", order.baseVersionId);
        },
        .fetch => {
            addDifference(arguments, order, store_path);
            arguments.addOption("version", "{f}", order.versionId);
            const fetch = difference_order.fetchOf(order).?;
            arguments.addOption("root", "{x}", @as(?[]const u8, &fetch.root));
        },
        // Devices come first: nobody waits for it.
        .gc => arguments.add("--idle", .{}),
        .delete, .verify, .adopt => arguments.addOption("version", "{f}", order.versionId),
        .clear_profile => {
            arguments.add("clear", .{});
            arguments.addOption("version", "{f}", order.versionId);
        },
        .@"export" => {
            arguments.add("--in-store", .{});
            arguments.addOption("version", "{f}", order.versionId);
            arguments.addOption("format", "{s}", order.format);
        },
        .merge => {
            arguments.addOption("version", "{f}", order.versionId);
            arguments.addOption("into", "{f}", order.intoVersionId);
            arguments.addOption("onto", "{f}", order.parentVersionId);
        },
        .drop_layer => {
            arguments.addOption("device", "{f}", order.deviceId);
            arguments.addOption("vdisk", "{f}", order.vdiskId);
            if (std.mem.eql(u8, order.layerClass.?, "private")) arguments.add("--private", .{});
        },
        .seal, .import => {
            if (kind == .import) addSource(arguments, order);
            arguments.add("--in-store", .{});
            arguments.addOption("version", "{f}", order.versionId);
            arguments.addOption("parent", "{f}", order.parentVersionId);
            if (kind == .import) {
                arguments.addOption("vdisk", "{f}", order.vdiskId);
                arguments.addOption("boot-files-of", "{f}", order.bootVersionId);
                addModules(arguments, order.modules);
            }
            writeBoot(arguments, order);
        },
    }
    if (makesVersion(kind)) arguments.addOption("number", "{d}", order.number);
}

fn addSource(arguments: *Arguments, order: *const Order) void {
    if (import_source.emptySizeOf(order)) |size|
        arguments.addOption("empty", "{d}", @as(?u64, size))
    else if (import_source.fileOf(order)) |id|
        arguments.add("{s}/{f}", .{ import_source.fetched_folder, id })
    else
        arguments.add("{s}", .{order.sourcePath.?});
}

fn addModules(arguments: *Arguments, names: []const []const u8) void {
    if (names.len == 0) return;
    assert(names.len <= modules_max);
    var buffer: [modules_max * (module_name_size_max + 1)]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    for (names, 0..) |name, index|
        writer.print("{s}{s}", .{ if (index == 0) "" else ",", name }) catch unreachable;
    arguments.addOption("add-modules", "{s}", @as(?[]const u8, writer.buffered()));
}

fn areModules(names: []const []const u8) bool {
    if (names.len > modules_max) return false;
    for (names) |name| {
        if (name.len == 0 or name.len > module_name_size_max) return false;
        for (name) |byte|
            if (!std.ascii.isAlphanumeric(byte) and byte != '_' and byte != '-') return false;
    }
    return true;
}

/// Each queue runs one job at a time, in parallel with the other's: jobs that read whole images,
/// for hours if those are large, need the write lock of the store at most at their start and end,
/// and the other jobs take almost no time.
/// Differences wait for lines and for other edges.
pub const Queue = enum { images, changes, differences };

pub fn queueOf(order: *const Order) Queue {
    return switch (std.meta.stringToEnum(Kind, order.kind) orelse return .changes) {
        .import, .adopt, .verify, .@"export" => .images,
        .pack, .fetch => .differences,
        .seal, .merge, .gc, .delete, .drop_layer, .clear_profile, .release_home => .changes,
    };
}

/// Returns the device whose writes another edge is to keep; null: another job.
pub fn releasedOf(order: *const Order) ?base.Uuid {
    return if (std.mem.eql(u8, order.kind, @tagName(Kind.release_home))) order.deviceId else null;
}

/// Returns the version or device whose layer the job removes if it is still written; null: no
/// device's writes are affected.
pub fn layerOf(order: *const Order) ?base.Uuid {
    const is_taken = std.mem.eql(u8, order.kind, "seal") or std.mem.eql(u8, order.kind, "delete");
    return if (is_taken) order.versionId else null;
}

fn writeBoot(arguments: *Arguments, order: *const Order) void {
    assert(arguments.count > 0);
    arguments.addOption("kernel", "{s}", order.kernelPath);
    arguments.addOption("initrd", "{s}", order.initrdPath);
    // Empty: the default of the kernel.
    if (order.commandLine) |line|
        if (line.len > 0) arguments.addOption("cmdline", "{s}", @as(?[]const u8, line));
    const from = order.bootFiles orelse return;
    switch (from) {
        .parent => arguments.add("--parent-boot-files", .{}),
        .none => arguments.add("--no-boot-files", .{}),
    }
}

/// Writes the command that lists the store's contents.
pub fn writeList(arguments: *Arguments, program: []const u8, store_path: []const u8) void {
    begin(arguments, program, "list", store_path);
    arguments.add("--sizes", .{});
}

/// Writes the command that verifies a version whose check is due.
pub fn writeCheck(
    arguments: *Arguments,
    program: []const u8,
    store_path: []const u8,
    version_id: base.Uuid,
) void {
    begin(arguments, program, "verify", store_path);
    arguments.addOption("version", "{f}", @as(?base.Uuid, version_id));
    arguments.add("--idle", .{});
    assert(arguments.count <= Arguments.words_max);
}

/// Writes the command for work that nobody has ordered.
pub fn writeUpkeep(
    arguments: *Arguments,
    program: []const u8,
    store_path: []const u8,
    command: []const u8,
) void {
    begin(arguments, program, command, store_path);
    arguments.add("--idle", .{});
}

/// Writes the command that brings the copies of write layers up to date.
pub fn writeCopies(
    arguments: *Arguments,
    program: []const u8,
    of: struct { store_path: []const u8, data_path: []const u8, reserve_bytes: ?u64 },
) void {
    assert(of.data_path.len <= Arguments.store_path_size_max);
    begin(arguments, program, "caches copy", of.store_path);
    arguments.addOption("data", "{s}", @as(?[]const u8, of.data_path));
    if (of.reserve_bytes) |bytes| {
        arguments.add("--reserve", .{});
        if (bytes == 0) arguments.add("0", .{}) else arguments.add("{d}K", .{bytes >> 10});
    }
}

/// Writes the command that sums up what a boot read, by file. @param reads the list's file
pub fn writeFilesRead(
    arguments: *Arguments,
    program: []const u8,
    store_path: []const u8,
    of: struct { version_id: base.Uuid, reads: []const u8, report: []const u8 },
) void {
    assert(of.reads.len <= Arguments.store_path_size_max);
    assert(of.report.len <= Arguments.store_path_size_max);
    begin(arguments, program, "files", store_path);
    arguments.addOption("version", "{f}", @as(?base.Uuid, of.version_id));
    arguments.addOption("reads", "{s}", @as(?[]const u8, of.reads));
    arguments.addOption("report", "{s}", @as(?[]const u8, of.report));
}

fn begin(
    arguments: *Arguments,
    program: []const u8,
    command: []const u8,
    store_path: []const u8,
) void {
    assert(program.len <= 64 and store_path.len <= Arguments.store_path_size_max);
    arguments.size = 0;
    arguments.count = 0;
    arguments.words = @splat(null);
    arguments.add("{s}", .{program});
    arguments.add("vdisk", .{});
    var words = std.mem.splitScalar(u8, command, ' ');
    while (words.next()) |name| arguments.add("{s}", .{name});
    arguments.add("--json", .{});
    arguments.add("--store", .{});
    arguments.add("{s}", .{store_path});
}

fn isPrintable(text: []const u8) bool {
    for (text) |byte| if (!std.ascii.isPrint(byte)) return false;
    return true;
}

/// The contents of one output line. The process's exit code says how the job ended.
pub const OutputEvent = union(enum) {
    progress: struct { done_bytes: u64, total_bytes: u64 },
    /// Why it failed.
    failed: Message,
    /// A version, and the byte of its disk if the damage is there.
    damaged: struct { id: base.Uuid, at_byte: ?u64 },
    /// What the job did, for a person.
    did: Message,
    /// A version that was created, or that the store contains.
    version: struct { stored: StoredVersion, made: Made },
    /// Contents of the store other than versions.
    other: StoredVersion,
};

pub const StoreFacts = struct {
    id: base.Uuid,
    public_key: [32]u8,
    format: u64,
    problem: base.UntrustedText = .empty,
};

pub const VersionState = enum { present, importing, damaged, missing };

/// The contents of a manifest besides its root: they identify a version that was imported by hand.
pub const Image = struct {
    name: base.UntrustedText,
    size_bytes: u64,
    created_unix_ms: u64,
    has_kernel: bool,
    organization_id: ?base.Uuid,
    parent_id: ?base.Uuid,
};

pub const StoredVersion = struct {
    version_id: base.Uuid,
    state: VersionState,
    root: ?[32]u8 = null,
    image: ?Image = null,
    is_layer: bool = false,
    own_bytes: u64,
    shared_bytes: u64,
    reclaimable_bytes: u64,
};

pub const BundleFile = struct { sha256: []const u8, sizeBytes: u64 };

/// `madeVersion` of src/uplink-store.ts.
pub const MadeVersion = struct {
    versionId: base.Uuid,
    root: []const u8,
    counter: u64,
    sizeBytes: u64,
    commandLine: ?[]const u8 = null,
    /// What its manifest says of it for people: the description of a version of PVS, for example.
    note: ?[]const u8 = null,
    kernel: ?BundleFile = null,
    initrd: ?BundleFile = null,
};

const Line = struct {
    progress: ?struct { positionBytes: u64, sizeBytes: ?u64 = null } = null,
    @"error": ?[]const u8 = null,
    version: ?base.Uuid = null,
    problem: ?[]const u8 = null,
    atByte: ?u64 = null,
    layer: ?base.Uuid = null,
    import: ?base.Uuid = null,
    manifest: ?struct { root: []const u8, counter: u64 } = null,
    name: base.UntrustedText = .empty,
    createdUnixMs: u64 = 0,
    organization: ?base.Uuid = null,
    parent: ?base.Uuid = null,
    sizeBytes: ?u64 = null,
    commandLine: ?[]const u8 = null,
    note: ?[]const u8 = null,
    kernel: ?BundleFile = null,
    initrd: ?BundleFile = null,
    ownBytes: u64 = 0,
    sharedBytes: u64 = 0,
    exported: ?base.Uuid = null,
    file: ?[]const u8 = null,
    freedBytes: ?u64 = null,
    checkedBytes: ?u64 = null,
    problems: ?u64 = null,
    writtenBytes: ?u64 = null,
    zeroBytes: u64 = 0,
    deleted: ?base.Uuid = null,
    dropped: ?u64 = null,
    cleared: ?u64 = null,
};

/// Bytes of a file's name in a message.
const file_shown_max = 160;

/// Bytes as people read them.
const Size = struct {
    bytes: u64,

    pub fn format(size: Size, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        const units = [_][]const u8{ "KiB", "MiB", "GiB", "TiB" };
        if (size.bytes < 1024) return writer.print("{d} B", .{size.bytes});
        // Rounded down. No file is so large that it overflows.
        var tenths = size.bytes *| 10 / 1024;
        var unit: usize = 0;
        while (tenths >= 10 * 1024 and unit + 1 < units.len) : (unit += 1) tenths /= 1024;
        try writer.print("{d}.{d} {s}", .{ tenths / 10, tenths % 10, units[unit] });
    }
};

/// What the last lines of a job say that it did; null: another line.
fn didOf(line: *const Line) ?Message {
    if (line.exported != null) {
        const file = line.file orelse return null;
        return printed("exported to {s}, a disk of {f}: wrote {f}", .{
            file[0..@min(file.len, file_shown_max)],
            Size{ .bytes = line.sizeBytes orelse 0 },
            Size{ .bytes = line.writtenBytes orelse 0 },
        });
    }
    if (line.freedBytes) |bytes| return printed("freed {f}", .{Size{ .bytes = bytes }});
    if (line.checkedBytes) |bytes| return printed("read {f}, {d} problems", .{
        Size{ .bytes = bytes }, line.problems orelse 0,
    });
    if (line.writtenBytes) |bytes| return printed(
        "wrote {f}; {f} were shared with the parent, {f} were zeros",
        .{
            Size{ .bytes = bytes },
            Size{ .bytes = line.sharedBytes },
            Size{ .bytes = line.zeroBytes },
        },
    );
    if (line.deleted != null) return messageOf("deleted; freeing space gives its blocks back");
    if (line.dropped) |count| return printed("dropped {d} layers of writes", .{count});
    if (line.cleared) |count| return printed("cleared {d} boot profiles", .{count});
    return null;
}

/// What a `pack` did.
pub fn differenceDid(size: u64) Message {
    return printed("packed a difference of {f}", .{Size{ .bytes = size }});
}

fn printed(comptime format: []const u8, values: anytype) Message {
    var buffer: [message_size_max]u8 = undefined;
    return messageOf(std.mem.print(&buffer, format, values) catch unreachable);
}

/// Returns null for a line that is not understood.
pub fn parse(text: []const u8) ?OutputEvent {
    if (text.len > line_size_max) return null;
    var memory: [16 * 1024]u8 = undefined;
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    const line = std.json.parseFromSliceLeaky(Line, fixed.allocator(), text, .{
        .ignore_unknown_fields = true,
    }) catch return null;
    if (line.@"error") |sentence| return .{ .failed = messageOf(sentence) };
    if (didOf(&line)) |message| return .{ .did = message };
    if (line.progress) |progress| return .{ .progress = .{
        .done_bytes = numberOf(progress.positionBytes) orelse return null,
        .total_bytes = numberOf(progress.sizeBytes orelse 0) orelse return null,
    } };
    var stored: StoredVersion = .{
        .version_id = line.version orelse line.layer orelse line.import orelse return null,
        .state = .present,
        .own_bytes = numberOf(line.ownBytes) orelse return null,
        .shared_bytes = numberOf(line.sharedBytes) orelse return null,
        // Bytes that no other version refers to.
        .reclaimable_bytes = line.ownBytes,
    };
    if (line.version == null) {
        if (line.layer == null) stored.state = .importing;
        stored.is_layer = line.layer != null;
        return .{ .other = stored };
    }
    if (line.problem != null) return .{ .damaged = .{
        .id = stored.version_id,
        .at_byte = if (line.atByte) |byte| numberOf(byte) else null,
    } };
    const manifest = line.manifest orelse return null;
    stored.root = key_text.parse(manifest.root) catch return null;
    var made: Made = .empty;
    writeMade(&made, &.{
        .versionId = stored.version_id,
        .root = manifest.root,
        .counter = manifest.counter,
        .sizeBytes = line.sizeBytes orelse return null,
        .commandLine = line.commandLine,
        .note = line.note,
        .kernel = line.kernel,
        .initrd = line.initrd,
    }) catch return null;
    stored.image = .{
        .name = line.name,
        .size_bytes = line.sizeBytes.?,
        // The clock was wrong.
        .created_unix_ms = @min(line.createdUnixMs, unix_ms_max),
        .has_kernel = line.kernel != null,
        .organization_id = line.organization,
        .parent_id = line.parent,
    };
    return .{ .version = .{ .stored = stored, .made = made } };
}

/// Parses the stored result of `writeMade`.
pub fn parseMade(text: []const u8) error{Malformed}!Made {
    if (text.len > line_size_max) return error.Malformed;
    var memory: [16 * 1024]u8 = undefined;
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    const given = std.json.parseFromSliceLeaky(MadeVersion, fixed.allocator(), text, .{
        .ignore_unknown_fields = true,
    }) catch
        return error.Malformed;
    var made: Made = .empty;
    try writeMade(&made, &given);
    return made;
}

fn numberOf(value: u64) ?u64 {
    return if (value > number_max) null else value;
}

/// Printable ASCII. What does not fit is left out by whole sentences, or else by whole words.
pub fn messageOf(text: []const u8) Message {
    var message: Message = .empty;
    const cut = cutOf(text);
    for (text[0..cut.size]) |byte|
        message.appendAssumeCapacity(if (std.ascii.isPrint(byte)) byte else '?');
    for (cut.end) |byte| message.appendAssumeCapacity(byte);
    return message;
}

fn cutOf(text: []const u8) struct { size: usize, end: []const u8 = "" } {
    if (text.len <= message_size_max) return .{ .size = text.len };
    const mark = "...";
    const start = text[0 .. message_size_max - mark.len];
    if (std.mem.findLast(u8, text[0..message_size_max], ". ")) |stop|
        return .{ .size = stop + 1 };
    const space = std.mem.findScalarLast(u8, start, ' ') orelse start.len;
    return .{ .size = space, .end = mark };
}

/// Removes the store's path, which means nothing to readers elsewhere; a command to type keeps it.
pub fn withoutPath(message: Message, path: []const u8) Message {
    const text = message.constSlice();
    var kept: Message = .empty;
    var at: usize = 0;
    while (at < text.len) : (at += 1) {
        if (text[at] == ' ' and std.ascii.endsWithIgnoreCase(text[0..at], "the store") and
            std.mem.startsWith(u8, text[at + 1 ..], path))
        {
            at += path.len;
        } else kept.appendAssumeCapacity(text[at]);
    }
    return kept;
}

/// Checked here, since it is forwarded unchanged.
pub fn writeMade(into: *Made, given: *const MadeVersion) error{Malformed}!void {
    _ = key_text.parse(given.root) catch return error.Malformed;
    if (given.counter > number_max or given.sizeBytes == 0 or given.sizeBytes > number_max)
        return error.Malformed;
    if (given.commandLine) |text|
        if (text.len > desired_state.command_line_size_max or !isPrintable(text))
            return error.Malformed;
    if (given.note) |text| if (text.len > note_size_max or !std.unicode.utf8ValidateSlice(text) or
        std.mem.findAny(u8, text, "\n\r\t\x00") != null) return error.Malformed;
    for ([_]?BundleFile{ given.kernel, given.initrd }) |file| if (file) |known| {
        if (known.sizeBytes == 0 or known.sizeBytes > number_max or known.sha256.len != 64)
            return error.Malformed;
        for (known.sha256) |byte|
            if (!std.ascii.isDigit(byte) and (byte < 'a' or byte > 'f')) return error.Malformed;
    };
    var writer: std.Io.Writer = .fixed(&into.buffer);
    std.json.Stringify.value(given, .{ .emit_null_optional_fields = false }, &writer) catch
        return error.Malformed;
    into.count = @intCast(writer.end);
    assert(into.count <= made_size_max);
}

test {
    _ = @import("store_job_test.zig");
}
