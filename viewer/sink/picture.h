// A picture in memory, and its PNG form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "traces/base/result.h"

namespace shard::view {

/// RGBA, 8 bits each, rows from the top, no padding.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgba;

  Picture() = default;
  Picture(int w, int h)
      : width(w), height(h), rgba(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 4, 255) {}
};

/// How hard to compress: a screenshot is wanted at once, a file that is kept or embedded is wanted small.
enum class PngEffort : std::uint8_t { fast, small };

/// The bytes of a PNG file (RGB: pictures of the viewer are opaque).
[[nodiscard]] Result<std::string> png_bytes(const Picture& picture, PngEffort effort = PngEffort::fast);

/// Writes a PNG file; it appears complete or not at all. Errc::cannot_create or Errc::io.
[[nodiscard]] Result<void> write_png(const Picture& picture, const std::filesystem::path& path,
                                     PngEffort effort = PngEffort::fast);

/// Reads a PNG file. Errc::no_input or Errc::malformed.
[[nodiscard]] Result<Picture> read_png(const std::filesystem::path& path);

}  // namespace shard::view
