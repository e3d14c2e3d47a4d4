//! `bootfarm-edge store-job`: one piece of work for a store, as the running edge has it done by a process of its own (host/store_worker.zig).
//! Nobody types this: its words and its output, one JSON object a line, are the edge's (core/store_job.zig). A kill at any moment is an
//! ordinary end; the same work again is harmless, and a version that is there already was made.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const store_module = @import("store");
const options_module = @import("options.zig");
const Terminal = @import("terminal.zig").Terminal;

const Store = store_module.Store;
const Uuid = base.Uuid;

/// What a step looks at, and between two of them a paced one rests at least as long: half of one disk's time at most.
const step_bytes = 8 << 20;
const progress_interval_us = 500 * std.time.us_per_ms;

const Options = struct {
    store: ?[]const u8 = null,
    version: ?Uuid = null,
    into: ?Uuid = null,
    parent: ?Uuid = null,
    number: u32 = 1,
    is_paced: bool = false,
};

const Work = struct {
    gpa: std.mem.Allocator,
    io: std.Io,
    terminal: *Terminal,
    store: *Store,
    options: Options,
    told_us: u64 = 0,

    fn print(work: *Work, comptime format: []const u8, values: anytype) void {
        var buffer: [core.store_job.line_size_max]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&buffer);
        writer.print(format ++ "\n", values) catch return;
        work.terminal.out(writer.buffered());
    }

    fn progress(work: *Work, done_bytes: u64, total_bytes: u64) void {
        const now_us = host.sys.monotonicUs();
        if (now_us < work.told_us + progress_interval_us) return;
        work.told_us = now_us;
        work.print("{{\"progressBytes\":{d},\"totalBytes\":{d}}}", .{ done_bytes, total_bytes });
    }
};

pub fn run(init: std.process.Init, rest: []const [:0]const u8, terminal: *Terminal) u8 {
    var complaint: options_module.Complaint = .{};
    if (rest.len == 0) return fail(terminal, "it does not say what to do");
    const options = parse(rest[1..], &complaint) catch return fail(terminal, complaint.text());
    const path = options.store orelse return fail(terminal, "it does not say which store");
    var on = store_module.LinuxFiles.open(path) catch |err| return fail(terminal, sentence(err));
    defer on.close();
    const gpa = std.heap.smp_allocator;
    var store = Store.open(gpa, on.files(), .{}) catch |err| return fail(terminal, sentence(err));
    defer store.close(gpa);
    var work: Work = .{ .gpa = gpa, .io = init.io, .terminal = terminal, .store = &store, .options = options };
    const does = for ([_]struct { []const u8, *const fn (*Work) anyerror!void }{
        .{ "list", list }, .{ "merge", merge }, .{ "verify", verify }, .{ "gc", collect }, .{ "delete", delete },
    }) |one| {
        if (std.mem.eql(u8, rest[0], one[0])) break one[1];
    } else return fail(terminal, "there is no such work");
    does(&work) catch |err| return fail(terminal, sentence(err));
    return 0;
}

fn fail(terminal: *Terminal, text: []const u8) u8 {
    var buffer: [1024]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    writer.print("{{\"error\":{f}}}\n", .{std.json.fmt(text[0..@min(text.len, core.store_job.message_size_max)], .{})}) catch unreachable;
    terminal.out(writer.buffered());
    return 1;
}

fn parse(rest: []const [:0]const u8, complaint: *options_module.Complaint) options_module.Error!Options {
    var options: Options = .{};
    var arguments: options_module.Arguments = .{ .rest = rest, .complaint = complaint };
    while (try arguments.next()) |argument| {
        const name = argument.name;
        if (std.mem.eql(u8, name, "--paced")) {
            options.is_paced = true;
            continue;
        }
        const value = try arguments.value(name, argument.value);
        if (std.mem.eql(u8, name, "--store")) options.store = value else if (std.mem.eql(u8, name, "--number"))
            options.number = std.fmt.parseInt(u32, value, 10) catch return complaint.set("{s} is no number", .{value})
        else {
            const place = if (std.mem.eql(u8, name, "--version")) &options.version else if (std.mem.eql(u8, name, "--into"))
                &options.into
            else if (std.mem.eql(u8, name, "--parent")) &options.parent else return complaint.set("there is no option {s}", .{name});
            place.* = Uuid.parse(value) catch return complaint.set("{s} is no id", .{value});
        }
    }
    return options;
}

const What = error{ NotSaid, DamageFound };

fn list(work: *Work) anyerror!void {
    const store = work.store;
    // Sizes are not known where a manifest or a node cannot be read; the versions are named all the same.
    var usage: ?store_module.usage.Usage = store_module.usage.Usage.of(work.gpa, store) catch |err| switch (err) {
        error.OutOfMemory => return err,
        else => null,
    };
    defer if (usage) |*known| known.deinit();
    var id: ?Uuid = null;
    while (try store.nextVersion(id)) |found| {
        id = found;
        const manifest = store.manifestOf(found) catch |err| switch (err) {
            error.NotFound => continue,
            else => {
                work.print("{{\"version\":{{\"versionId\":\"{f}\",\"state\":\"damaged\",\"ownBytes\":0,\"sharedBytes\":0,\"reclaimableBytes\":0}}}}", .{found});
                continue;
            },
        };
        const sizes: store_module.usage.Sizes = if (usage) |*known| known.sizesOf(store, &manifest) catch .{} else .{};
        work.print("{{\"version\":{{\"versionId\":\"{f}\",\"state\":\"present\",\"root\":\"{s}\",\"ownBytes\":{d},\"sharedBytes\":{d},\"reclaimableBytes\":{d}}}}}", .{
            found, &core.uplink_message.keyText(manifest.root.hash), sizes.own, sizes.shared, sizes.own,
        });
    }
    work.print("{{\"done\":true}}", .{});
}

fn merge(work: *Work) anyerror!void {
    const options = &work.options;
    const wanted: store_module.merge.Wanted = .{
        .of = options.version orelse return What.NotSaid,
        .onto = options.parent,
        .version = options.into orelse return What.NotSaid,
        .number = options.number,
        .created_unix_ms = host.sys.unixMs(),
    };
    if (!try isMade(work.store, &wanted)) {
        var change = try work.store.lockForChange();
        defer change.end();
        try store_module.merge.merge(&change, wanted);
    }
    const manifest = try work.store.manifestOf(wanted.version);
    var made: core.store_job.Made = .empty;
    const kernel = shownFile(manifest.kernel);
    const initrd = shownFile(manifest.initrd);
    try core.store_job.writeMade(&made, &.{
        .versionId = wanted.version,
        .root = &core.uplink_message.keyText(manifest.root.hash),
        .counter = manifest.counter,
        .sizeBytes = manifest.disk_size,
        .kernel = if (kernel) |*file| .{ .sha256 = &file.hex, .sizeBytes = file.size } else null,
        .initrd = if (initrd) |*file| .{ .sha256 = &file.hex, .sizeBytes = file.size } else null,
    });
    work.print("{{\"done\":true,\"made\":{s}}}", .{made.constSlice()});
}

/// By a process that was killed, or whose end nobody heard. What it was made of may have been deleted since.
fn isMade(store: *Store, wanted: *const store_module.merge.Wanted) !bool {
    const made = store.manifestOf(wanted.version) catch |err| return if (err == error.NotFound) false else err;
    const of = store.manifestOf(wanted.of) catch |err| return if (err == error.NotFound) true else err;
    if (!std.mem.eql(u8, &made.root.hash, &of.root.hash)) return error.Exists;
    return true;
}

const ShownFile = struct { hex: [64]u8, size: u64 };

fn shownFile(file: ?store_module.manifest.BootFile) ?ShownFile {
    const known = file orelse return null;
    return .{ .hex = std.fmt.bytesToHex(known.hash, .lower), .size = known.size };
}

fn delete(work: *Work) anyerror!void {
    var change = try work.store.lockForChange();
    defer change.end();
    change.delete(work.options.version orelse return What.NotSaid) catch |err| if (err != error.NotFound) return err;
    work.print("{{\"done\":true}}", .{});
}

fn collect(work: *Work) anyerror!void {
    var change = try work.store.lockForChange();
    defer change.end();
    var collection: store_module.collect.Collection = try .begin(work.gpa, &change);
    defer collection.end();
    while (try collection.step(step_bytes)) work.progress(collection.seen, 0);
    work.print("{{\"progressBytes\":{d},\"totalBytes\":{d},\"message\":\"{d} bytes freed\"}}", .{ collection.seen, collection.seen, collection.freed });
    work.print("{{\"done\":true}}", .{});
}

fn verify(work: *Work) anyerror!void {
    var verification: store_module.verify.Verification = .init(work.gpa, work.store);
    defer verification.deinit();
    var is_damaged = false;
    if (work.options.version) |id| {
        is_damaged = try verifyOne(work, &verification, id);
    } else {
        var id: ?Uuid = null;
        while (try work.store.nextVersion(id)) |found| {
            id = found;
            if (try verifyOne(work, &verification, found)) is_damaged = true;
        }
    }
    work.print("{{\"progressBytes\":{d},\"totalBytes\":{d}}}", .{ verification.checked, verification.checked });
    if (is_damaged) return What.DamageFound;
    work.print("{{\"done\":true}}", .{});
}

fn verifyOne(work: *Work, verification: *store_module.verify.Verification, id: Uuid) anyerror!bool {
    var version = work.store.openVersion(id) catch |err| switch (err) {
        // Deleted meanwhile, where all are looked at.
        error.NotFound => return if (work.options.version == null) false else err,
        error.Damaged, error.NotAManifest, error.WrongSignature, error.Malformed, error.OtherStore, error.OtherName => {
            work.print("{{\"damaged\":\"{f}\"}}", .{id});
            return true;
        },
        else => return err,
    };
    defer version.close();
    verification.begin(&version.manifest);
    var is_damaged = false;
    while (true) {
        const begun_us = host.sys.monotonicUs();
        switch (try verification.step(step_bytes)) {
            .more => {},
            .done => break,
            .problem => is_damaged = true,
        }
        work.progress(verification.checked, 0);
        const took_us = host.sys.monotonicUs() - begun_us;
        if (work.options.is_paced) try work.io.sleep(.fromMicroseconds(@intCast(took_us)), .awake);
    }
    if (is_damaged) work.print("{{\"damaged\":\"{f}\"}}", .{id});
    return is_damaged;
}

fn sentence(err: anyerror) []const u8 {
    return switch (err) {
        error.NotSaid => "it does not say which version",
        error.DamageFound => "a version is damaged: restore it from another edge or import it again",
        error.NotFound => "the store, or the version in it, is not there",
        error.NotAStore => "the directory is not a store",
        error.NotEmpty => "the directory holds other files",
        error.HeadDamaged, error.KeyDamaged => "the store's own head or key is damaged",
        error.TooNew => "it was made by a later version of this program",
        error.Locked => "the version is in use, or another process changes the store",
        error.NoSpace => "the store's disk is full",
        error.ReadOnly => "the store is read-only",
        error.Denied => "this user may not change the store",
        error.TooManyFiles => "too many files are open on this machine",
        error.DiskFailed, error.ReadFailed => "the store's disk reports an error",
        error.Damaged, error.NotAManifest, error.WrongSignature, error.Malformed, error.OtherStore, error.OtherName => "the version is damaged",
        error.OtherVdisk => "the two versions are of different vDisks",
        error.NotBelow => "the version was not made from the one that it is to lie above",
        error.Exists => "there is a version with that id already, of other bytes",
        error.Unfinished => "an import was interrupted: end it or give it up first",
        error.OutOfMemory => "there is not enough memory",
        else => "the system refused",
    };
}
