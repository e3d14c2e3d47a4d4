//! Writes mutants into a copy of the sources. One build holds hundreds of them, and `schemata.zig`
//! switches one on at run time: `a < b` becomes `(if (on(17)) (a <= b) else (a < b))`.
//! `scripts/mutation` makes the copy, calls this, and calls it again without those mutants that the
//! compiler refuses. Where the compiler complains is a place in the copy: the list says which
//! mutant is there.

const std = @import("std");
const find_sites = @import("sites.zig");
const Allocator = std.mem.Allocator;
const Io = std.Io;
const Site = find_sites.Site;
const Span = find_sites.Span;

const usage =
    \\usage: mutate --copy DIR --list FILE [options]
    \\Writes mutants into DIR, a copy of this folder, and their list into FILE.
    \\  --seed N        draws others (1)
    \\  --count N       this many; 0: all (0)
    \\  --only PATHS    of these files and folders of src, separated by commas
    \\  --ids LIST      only these, separated by commas
    \\  --without LIST  none of these
    \\Example: zig build mutate -- --copy /tmp/copy --list /tmp/list.json --only core/boot
    \\
;

const folders = [_][]const u8{ "agent", "core", "store" };
const file_size_max = 1 << 20;
const helper = "src/base/schemata.zig";
/// The runner needs the two variables of a program whose tests reach no mutant, too.
const helper_lines =
    \\
    \\pub const mutation_schemata = @import("schemata.zig");
    \\comptime {
    \\    _ = mutation_schemata;
    \\}
    \\
;
const import_line = "\nconst mutation_schemata = @import(\"base\").mutation_schemata;\n";

const Options = struct {
    copy: []const u8 = "",
    list: []const u8 = "",
    only: []const u8 = "",
    ids: []const u8 = "",
    without: []const u8 = "",
    seed: u64 = 1,
    count: u64 = 0,
};

const File = struct {
    /// In src.
    path: []const u8,
    source: [:0]const u8,
    sites: []Site,
    first_id: u32,
    chosen: std.ArrayList(u32) = .empty,
};

/// A mutant as the list has it; places in the copy are bytes of the mutated file.
const Mutant = struct {
    id: u32,
    file: []const u8,
    line: u32,
    function: []const u8,
    before: []const u8,
    after: []const u8,
    /// Tells apart mutants of a function that read the same.
    number: u32,
    own: Span,
    host: Span,
    scope: Span,
};

pub fn main(init: std.process.Init) !u8 {
    const arena = init.arena.allocator();
    const arguments = try init.minimal.args.toSlice(arena);
    const options = parse(arguments[1..]) catch {
        std.debug.print("{s}", .{usage});
        return 2;
    };
    const files = try readFiles(arena, init.io);
    const sites_count = try choose(arena, files, &options);
    const copy = try Io.Dir.cwd().openDir(init.io, options.copy, .{});
    var mutants: std.ArrayList(Mutant) = .empty;
    for (files) |*file| {
        const path = try std.fmt.allocPrint(arena, "src/{s}", .{file.path});
        const text = try mutated(arena, file, &mutants);
        try copy.writeFile(init.io, .{ .sub_path = path, .data = text });
    }
    try copy.writeFile(init.io, .{ .sub_path = helper, .data = @embedFile("schemata.zig") });
    const base = try readFile(arena, init.io, "base/base.zig");
    const with_helper = try std.mem.concat(arena, u8, &.{ base, helper_lines });
    try copy.writeFile(init.io, .{ .sub_path = "src/base/base.zig", .data = with_helper });
    const list = try std.json.Stringify.valueAlloc(arena, .{
        .sites = sites_count,
        .mutants = mutants.items,
    }, .{});
    try Io.Dir.cwd().writeFile(init.io, .{ .sub_path = options.list, .data = list });
    return 0;
}

fn parse(arguments: []const [:0]const u8) !Options {
    var options: Options = .{};
    var index: usize = 0;
    while (index < arguments.len) : (index += 2) {
        if (index + 1 == arguments.len) return error.Usage;
        const value = arguments[index + 1];
        const is_known = inline for (@typeInfo(Options).@"struct".field_names) |name| {
            if (std.mem.eql(u8, arguments[index], "--" ++ name)) {
                const field = &@field(options, name);
                if (@TypeOf(field.*) == u64) {
                    field.* = try std.fmt.parseInt(u64, value, 10);
                } else field.* = value;
                break true;
            }
        } else false;
        if (!is_known) return error.Usage;
    }
    return if (options.copy.len == 0 or options.list.len == 0) error.Usage else options;
}

fn readFile(arena: Allocator, io: Io, path: []const u8) ![:0]const u8 {
    const full = try std.fmt.allocPrint(arena, "src/{s}", .{path});
    const bytes = try Io.Dir.cwd().readFileAlloc(io, full, arena, .limited(file_size_max));
    return arena.dupeSentinel(u8, bytes, 0);
}

/// Returns every file that can be mutated, in the order of their paths; their sites are numbered
/// from 1.
fn readFiles(arena: Allocator, io: Io) ![]File {
    var paths: std.ArrayList([]const u8) = .empty;
    for (folders) |folder| {
        const path = try std.fmt.allocPrint(arena, "src/{s}", .{folder});
        const dir = try Io.Dir.cwd().openDir(io, path, .{ .iterate = true });
        var walker = try dir.walk(arena);
        while (try walker.next(io)) |entry| {
            if (entry.kind != .file or !isProduct(entry.basename)) continue;
            try paths.append(arena, try std.fs.path.join(arena, &.{ folder, entry.path }));
        }
    }
    std.sort.insertion([]const u8, paths.items, {}, isBefore);
    var files: std.ArrayList(File) = .empty;
    var next_id: u32 = 1;
    for (paths.items) |path| {
        const source = try readFile(arena, io, path);
        const sites = try find_sites.find(arena, source);
        try files.append(arena, .{
            .path = path,
            .source = source,
            .sites = sites,
            .first_id = next_id,
        });
        next_id += @intCast(sites.len);
    }
    return files.items;
}

fn isBefore(_: void, a: []const u8, b: []const u8) bool {
    return std.mem.order(u8, a, b) == .lt;
}

/// Returns false for tests, for what only they use, and for the mistakes of the simulation.
fn isProduct(name: []const u8) bool {
    if (!std.mem.endsWith(u8, name, ".zig")) return false;
    if (std.mem.endsWith(u8, name, "_test.zig")) return false;
    if (std.mem.startsWith(u8, name, "test_")) return false;
    return !std.mem.eql(u8, name, "mutants.zig") and !std.mem.eql(u8, name, "simulated.zig");
}

/// Draws mutants; returns how many sites there are in all.
fn choose(arena: Allocator, files: []File, options: *const Options) !u32 {
    const Place = struct { file: u32, site: u32 };
    var places: std.ArrayList(Place) = .empty;
    var sites_count: u32 = 0;
    for (files, 0..) |*file, index| {
        sites_count += @intCast(file.sites.len);
        if (!isWithin(options.only, file.path)) continue;
        for (0..file.sites.len) |site|
            try places.append(arena, .{ .file = @intCast(index), .site = @intCast(site) });
    }
    var prng: std.Random.DefaultPrng = .init(options.seed);
    const random = prng.random();
    var left = if (options.count == 0) places.items.len else options.count;
    for (places.items, 0..) |*place, index| {
        if (left == 0) break;
        const other = index + random.uintLessThan(u64, places.items.len - index);
        std.mem.swap(Place, place, &places.items[@intCast(other)]);
        const file = &files[place.file];
        const id = file.first_id + place.site;
        if (has(options.without, id)) continue;
        if (options.ids.len > 0 and !has(options.ids, id)) continue;
        left -= 1;
        try file.chosen.append(arena, place.site);
    }
    for (files) |*file| std.sort.insertion(u32, file.chosen.items, {}, std.sort.asc(u32));
    return sites_count;
}

fn isWithin(only: []const u8, path: []const u8) bool {
    if (only.len == 0) return true;
    var starts = std.mem.tokenizeScalar(u8, only, ',');
    while (starts.next()) |start| {
        if (!std.mem.startsWith(u8, path, start)) continue;
        if (path.len == start.len or path[start.len] == '/') return true;
    }
    return false;
}

fn has(list: []const u8, id: u32) bool {
    var numbers = std.mem.tokenizeScalar(u8, list, ',');
    while (numbers.next()) |number|
        if (std.fmt.parseInt(u32, number, 10) catch 0 == id) return true;
    return false;
}

/// Text that is put before or after a host.
const Insertion = struct {
    at: u32,
    text: []const u8,
    host: Span,
    is_suffix: bool,
    /// Mutants whose text is in `text`, and where.
    owns: []const Own = &.{},

    const Own = struct { site: u32, span: Span };

    /// What ends at a place stands before what begins there; the inner one ends first and begins
    /// last.
    fn isBefore(_: void, a: Insertion, b: Insertion) bool {
        if (a.at != b.at) return a.at < b.at;
        if (a.is_suffix != b.is_suffix) return a.is_suffix;
        if (a.is_suffix) return a.host.first > b.host.first;
        return a.host.end > b.host.end;
    }
};

/// Returns the file with its chosen mutants in it, and adds them to the list.
fn mutated(arena: Allocator, file: *const File, mutants: *std.ArrayList(Mutant)) ![]const u8 {
    if (file.chosen.items.len == 0) return file.source;
    var insertions: std.ArrayList(Insertion) = .empty;
    const is_done = try arena.alloc(bool, file.sites.len);
    @memset(is_done, false);
    for (file.chosen.items) |site| {
        if (is_done[site]) continue;
        const host = file.sites[site].host;
        var together: std.ArrayList(u32) = .empty;
        for (file.chosen.items) |other| if (std.meta.eql(file.sites[other].host, host)) {
            is_done[other] = true;
            try together.append(arena, other);
        };
        try insertions.append(arena, try prefix(arena, file, together.items));
        const closing = if (hasSemicolon(file, host)) " }" else "; }";
        try insertions.append(arena, .{
            .at = host.end,
            .text = if (file.sites[site].is_statement) closing else "))",
            .host = host,
            .is_suffix = true,
        });
    }
    std.sort.insertion(Insertion, insertions.items, {}, Insertion.isBefore);
    var out: std.ArrayList(u8) = .empty;
    var at: u32 = 0;
    const first_mutant = mutants.items.len;
    for (insertions.items) |*insertion| {
        try out.appendSlice(arena, file.source[at..insertion.at]);
        at = insertion.at;
        for (insertion.owns) |own| {
            const start: u32 = @intCast(out.items.len);
            try mutants.append(arena, try describe(arena, file, own.site));
            mutants.items[mutants.items.len - 1].own = .{
                .first = start + own.span.first,
                .end = start + own.span.end,
            };
        }
        try out.appendSlice(arena, insertion.text);
    }
    try out.appendSlice(arena, file.source[at..]);
    try out.appendSlice(arena, import_line);
    for (mutants.items[first_mutant..]) |*mutant| {
        const site = &file.sites[mutant.id - file.first_id];
        mutant.host = placeInCopy(insertions.items, site.host);
        mutant.scope = placeInCopy(insertions.items, site.scope);
        mutant.number = numberOf(file, mutant.id - file.first_id);
    }
    return out.items;
}

fn hasSemicolon(file: *const File, host: Span) bool {
    return file.source[host.end - 1] == ';';
}

/// Returns what stands before a host: each of its mutants, if it is on.
fn prefix(arena: Allocator, file: *const File, sites: []const u32) !Insertion {
    const host = file.sites[sites[0]].host;
    const is_statement = file.sites[sites[0]].is_statement;
    var text: std.ArrayList(u8) = .empty;
    var owns: std.ArrayList(Insertion.Own) = .empty;
    try text.appendSlice(arena, if (is_statement) "{ " else "(");
    for (sites) |index| {
        const site = &file.sites[index];
        const id = file.first_id + index;
        const opening = if (is_statement) "{" else "(";
        try text.print(arena, "if (mutation_schemata.on({d})) {s}", .{ id, opening });
        const first: u32 = @intCast(text.items.len);
        if (!site.isDropped()) {
            try text.appendSlice(arena, file.source[host.first..site.edit.first]);
            try text.appendSlice(arena, site.text);
            try text.appendSlice(arena, file.source[site.edit.end..host.end]);
            if (is_statement and !hasSemicolon(file, host)) try text.appendSlice(arena, ";");
        }
        const end: u32 = @intCast(text.items.len);
        try owns.append(arena, .{ .site = index, .span = .{ .first = first, .end = end } });
        try text.appendSlice(arena, if (is_statement) "} else " else ") else ");
    }
    if (!is_statement) try text.appendSlice(arena, "(");
    return .{
        .at = host.first,
        .text = text.items,
        .host = host,
        .is_suffix = false,
        .owns = owns.items,
    };
}

fn placeInCopy(insertions: []const Insertion, span: Span) Span {
    var place = span;
    for (insertions) |*insertion| {
        const size: u32 = @intCast(insertion.text.len);
        if (insertion.at < span.first) place.first += size;
        const is_own_end = insertion.is_suffix and insertion.at == span.end;
        if (insertion.at < span.end or is_own_end) place.end += size;
    }
    return place;
}

fn describe(arena: Allocator, file: *const File, index: u32) !Mutant {
    const site = &file.sites[index];
    const before = file.source[site.host.first..site.host.end];
    const after = try std.mem.concat(arena, u8, &.{
        file.source[site.host.first..site.edit.first],
        site.text,
        file.source[site.edit.end..site.host.end],
    });
    return .{
        .id = file.first_id + index,
        .file = file.path,
        .line = @intCast(1 + std.mem.countScalar(u8, file.source[0..site.edit.first], '\n')),
        .function = site.function,
        .before = try onOneLine(arena, before),
        .after = try onOneLine(arena, after),
        .number = 0,
        .own = undefined,
        .host = undefined,
        .scope = undefined,
    };
}

/// Returns how many earlier mutants of the same function change the same text to the same.
fn numberOf(file: *const File, index: u32) u32 {
    const site = &file.sites[index];
    var number: u32 = 0;
    for (file.sites[0..index]) |*other| {
        if (!std.meta.eql(other.scope, site.scope)) continue;
        if (!std.mem.eql(u8, other.text, site.text)) continue;
        if (other.edit.first - other.host.first != site.edit.first - site.host.first) continue;
        const text = file.source[other.host.first..other.host.end];
        if (std.mem.eql(u8, text, file.source[site.host.first..site.host.end])) number += 1;
    }
    return number;
}

fn onOneLine(arena: Allocator, text: []const u8) ![]const u8 {
    var words = std.mem.tokenizeAny(u8, text, " \n");
    var out: std.ArrayList(u8) = .empty;
    while (words.next()) |word| {
        if (out.items.len > 0) try out.append(arena, ' ');
        try out.appendSlice(arena, word);
    }
    return out.items;
}
