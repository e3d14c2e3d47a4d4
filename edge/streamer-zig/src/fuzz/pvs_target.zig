//! Fuzzes manifests of PVS, which are untrusted: whatever a file says, reading it ends, and gives
//! versions whose files are in its directory, or a fault.

const std = @import("std");
const image = @import("image");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const Manifest = image.pvs.Manifest;
const expect = fuzz_case.expect;

var read: Manifest = .{};

const parts = [_][]const u8{
    "<",                  ">",                    "/",                 "&",
    "&amp;",              "&#228;",               "&#x110000;",        "<![CDATA[",
    "]]>",                "<!--",                 "-->",               "<?",
    "?>",                 "<!DOCTYPE",            "'",                 "\"",
    "<version>",          "</version>",           "<versionManifest>", "</versionManifest>",
    "<versionNumber>",    "</versionNumber>",     "<description>",     "</description>",
    "<diskFileName>",     "</diskFileName>",      "..",                "\\",
    "\xef\xbb\xbf",       "\xc3",                 "99999999999",       "-1",
    "<a><a><a><a><a><a>", "</a></a></a></a></a>", "<size>",            "</size>",
};

pub fn manifest(case: *Case) Violation!bool {
    var buffer: [4096]u8 = undefined;
    const bytes = make(case, &buffer);
    read.parse(bytes) catch |fault| {
        try expect(Manifest.sentence(fault).len > 0, "a fault has a sentence");
        return false;
    };
    try expect(read.versions.count > 0, "a manifest that is accepted has a version");
    for (read.versions.constSlice()) |*version| {
        const name = version.file.constSlice();
        try expect(image.pvs.file_name.isPlain(name), "a version's file is in the directory");
        const description = version.description.constSlice();
        try expect(std.unicode.utf8ValidateSlice(description), "a description is UTF-8");
        for (description) |char| try expect(!std.ascii.isControl(char), "and one line");
        if (image.pvs.file_name.parse(name)) |found|
            try expect(found.disk.len > 0, "a vDisk has a name");
    }
    return true;
}

fn make(case: *Case, buffer: *[4096]u8) []u8 {
    const prng = &case.prng;
    if (prng.chance(1, 32)) return case.garbage(buffer);
    @memcpy(buffer[0..Manifest.example.len], Manifest.example);
    if (prng.chance(1, 8)) return buffer[0..Manifest.example.len];
    if (prng.chance(1, 2)) return case.mutate(buffer, Manifest.example.len);
    var size: usize = Manifest.example.len;
    for (0..@intCast(prng.between(1, 6))) |_| {
        const part = prng.pick([]const u8, &parts);
        const at: usize = @intCast(prng.below(size));
        const end = @min(size + part.len, buffer.len);
        if (prng.chance(1, 2) and end == size + part.len) {
            std.mem.copyBackwards(u8, buffer[at + part.len .. end], buffer[at..size]);
            size = end;
        }
        const room = @min(part.len, size - at);
        @memcpy(buffer[at..][0..room], part[0..room]);
    }
    return buffer[0..size];
}
