// PNG in and out, through libpng's simplified interface.
#include "viewer/sink/picture.h"

#include <png.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace shard::view {
namespace {

png_image image_of(const Picture& picture, PngEffort effort) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  if (effort == PngEffort::fast) image.flags = PNG_IMAGE_FLAG_FAST;
  return image;
}

std::vector<std::uint8_t> rgb_of(const Picture& picture) {
  std::vector<std::uint8_t> rgb(picture.rgba.size() / 4 * 3);
  for (std::size_t i = 0, j = 0; i + 3 < picture.rgba.size(); i += 4, j += 3)
    std::memcpy(rgb.data() + j, picture.rgba.data() + i, 3);
  return rgb;
}

}  // namespace

Result<std::string> png_bytes(const Picture& picture, PngEffort effort) {
  png_image image = image_of(picture, effort);
  const std::vector<std::uint8_t> rgb = rgb_of(picture);
  png_alloc_size_t size = 0;
  std::string bytes;
  // The first call only tells how many bytes to reserve.
  if (png_image_write_to_memory(&image, nullptr, &size, 0, rgb.data(), 0, nullptr) != 0) {
    bytes.resize(size);
    if (png_image_write_to_memory(&image, bytes.data(), &size, 0, rgb.data(), 0, nullptr) != 0) {
      bytes.resize(size);
      return bytes;
    }
  }
  return Error{Errc::internal, std::string("the picture cannot be encoded: ") + image.message, "", ""};
}

Result<void> write_png(const Picture& picture, const std::filesystem::path& path, PngEffort effort) {
  const Result<std::string> bytes = png_bytes(picture, effort);
  if (!bytes) return bytes.error();
  std::filesystem::path part = path;
  part += ".part";
  {
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    if (!out) {
      return Error{Errc::cannot_create, "the picture cannot be created", path.string(),
                   "a folder that exists and that you may write to"};
    }
    out.write(bytes->data(), static_cast<std::streamsize>(bytes->size()));
    out.close();
    if (!out) {
      std::error_code ignored;
      std::filesystem::remove(part, ignored);
      return Error{Errc::io, "the picture could not be written", path.string(), "is the disk full?"};
    }
  }
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    return Error{Errc::cannot_create, "the picture cannot be put in place: " + error.message(), path.string(), ""};
  }
  return {};
}

Result<Picture> read_png(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Errc::no_input, "the picture cannot be read", path.string(), ""};
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0)
    return Error{Errc::malformed, std::string("not a PNG: ") + image.message, path.string(), ""};
  image.format = PNG_FORMAT_RGBA;
  Picture picture(static_cast<int>(image.width), static_cast<int>(image.height));
  if (png_image_finish_read(&image, nullptr, picture.rgba.data(), 0, nullptr) == 0)
    return Error{Errc::malformed, std::string("a damaged PNG: ") + image.message, path.string(), ""};
  return picture;
}

}  // namespace shard::view
