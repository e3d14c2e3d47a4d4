//! What a device was given to boot.

const base = @import("base");
const LocalDisk = @import("../target/local_disk_order.zig").LocalDisk;

/// What the device was given at its begin, or chose in its menu; all of it stays for this boot, whatever
/// the policy says later.
pub const Assignment = struct {
    version_id: base.Uuid,
    vdisk_id: ?base.Uuid = null,
    device_id: ?base.Uuid = null,
    /// False for a disk that was named on the command line: its made-up ids are not reported.
    managed: bool = false,
    /// The device is the one that writes the version, which is in maintenance.
    writes: bool = false,
    /// Its writes go to its memory, and then to a disk of its own.
    local_disk: ?LocalDisk = null,
    loader_files: LoaderFiles = .{},
    /// The boot program set that was chosen for the device; empty: whatever the edge has.
    program_set: base.UntrustedText = .empty,
};

pub const LoaderFile = enum { script, kernel, initrd, other };

/// Which files end the loader phase when all of them are delivered; none: only the first disk read
/// ends it.
pub const LoaderFiles = packed struct(u8) {
    kernel: bool = false,
    initrd: bool = false,
    _: u6 = 0,

    pub fn with(files: LoaderFiles, file: LoaderFile) LoaderFiles {
        var result = files;
        switch (file) {
            .kernel => result.kernel = true,
            .initrd => result.initrd = true,
            .script, .other => {},
        }
        return result;
    }

    pub fn contains(files: LoaderFiles, others: LoaderFiles) bool {
        return toInt(files) & toInt(others) == toInt(others);
    }

    pub fn toInt(files: LoaderFiles) u8 {
        return @bitCast(files);
    }
};
