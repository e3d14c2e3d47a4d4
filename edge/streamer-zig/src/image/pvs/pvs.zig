//! Stores of Citrix Provisioning (PVS), read as they lie there: the names of a vDisk's files and
//! the manifest that `Export` of its console writes. The disks themselves are VHD and VHDX files,
//! which `container` reads. Manifests are untrusted.

pub const file_name = @import("file_name.zig");
pub const FileName = file_name.FileName;
pub const Manifest = @import("manifest.zig");
pub const Xml = @import("xml.zig");

test {
    _ = file_name;
    _ = Manifest;
    _ = Xml;
}
